"""Results of code with the founding five failures, which `python -m tools.measure.documented_table` writes.

The kept results in `tests/simulate/documented.jsonl` give a row for each thread or repository in `docs/simulate.md`,
and a row for each run in `tests/simulate/FOREIGN.md`.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from repros.engine import catalogue
from repros.engine.evidence.measurement import Evidence
from repros.simulated_gpus.tools.page import fill_part
from tools.docs.generator import run_generator
from tools.measure.foreign_programs.documented import KEPT
from tools.measure.foreign_programs.place import read_kept
from tools.measure.foreign_programs.programs import DOCUMENTED
from tools.measure.simulate_table import EVERY_PROGRAM

_WIDTH = 140
_LONGEST = 110
"""Characters of an error that a row shows."""


def read_lines() -> list[dict[str, Any]]:
    """Return the kept results, by failure."""
    return sorted(read_kept(KEPT), key=lambda line: (line["repro"], "#" not in line["source"], line["source"]))


def measured(line: dict[str, Any], evidence: Evidence) -> str:
    """Return what the catalogue's own variant did on the stack of a result: `fails`, `runs`, or both words."""
    found = set()
    for unit, measurement in evidence.items():
        seen = measurement.variants.get(line["variant"])
        if seen is not None and (unit.repro, unit.stack) == (line["repro"], line["stack"]):
            found |= {"fails"} if seen.verdict.shows_failure else {"runs"} if seen.verdict.ran_clean else set()
    return " ".join(sorted(found))


def summary(lines: Sequence[dict[str, Any]], evidence: Evidence) -> str:
    """Return the sentence and the table by thread and repository, in Markdown."""
    alike = sum(line["outcome"] == measured(line, evidence) for line in lines)
    head = (
        f"{alike} of {len(lines)} runs did what the variant of the catalogue's own script does with the same releases:"
        f" {sum(line['outcome'] == 'fails' for line in lines)} failed as documented, and"
        f" {sum(line['outcome'] == 'runs' for line in lines)} ran."
    )
    rows = ["| Failure | Code | Its error | Fails | Runs |", "|---|---|---|---|---|"]
    by_id = {repro.id: repro for repro in catalogue.load()}
    for (id_, _), group in groupby(lines, key=lambda line: (line["repro"], line["source"])):
        its = list(group)
        path = f"../repros/catalogue/{by_id[id_].family}/{by_id[id_].path.name}"
        failed = next(line for line in its if line["outcome"] == "fails")
        error = _shortened(failed["error"]) if failed["exit"] else failed["error"]
        kinds = ["; ".join(_names(its, outcome)) for outcome in ("fails", "runs")]
        rows.append(f"| [{id_}]({path}) | {_link(its[0])} | {error} | {' | '.join(kinds)} |")
    return f"{textwrap.fill(head, _WIDTH)}\n\n" + "\n".join(rows) + "\n"


def every_run(lines: Sequence[dict[str, Any]], reasons: dict[str, str]) -> str:
    """Return a row for each run, in Markdown; `reasons` say by source what keeps its code from running as posted."""
    rows = ["| Failure | Code | Run | Variant | Stack | torch | GPUs | Came out | About the code |"]
    rows += ["|---|---|---|---|---|---|--:|---|---|"]
    for line in lines:
        torch = line["torch"].partition("+")[0]
        came_out = f"{line['outcome']}: {line['error']}" if line["error"] else line["outcome"]
        cells = [line["repro"], _link(line), line["program"], f"`{line['variant']}`", line["stack"], torch]
        rows.append(f"| {' | '.join([*cells, str(line['gpus']), came_out, reasons.get(line['source'], '')])} |")
    return "\n".join(rows) + "\n"


def read_reasons() -> dict[str, str]:
    """Return what keeps code from running as posted, by its source."""
    sources = tomllib.loads(DOCUMENTED.read_text("utf-8"))["source"]
    return {source["from"]: source["why"] for source in sources if "why" in source}


def fill(page: str, body: str) -> str:
    """Return the page with its generated part updated."""
    return fill_part(page, "documented", body)


def _names(lines: Sequence[dict[str, Any]], outcome: str) -> Iterator[str]:
    return (line["program"] for line in lines if line["outcome"] == outcome)


def _shortened(error: str) -> str:
    return f"`{error}`" if len(error) <= _LONGEST else f"`{error[:_LONGEST].rstrip()} ...`"


def _link(line: dict[str, Any]) -> str:
    repository, _, number = line["source"].partition("#")
    place = f"issues/{number}" if number else f"tree/{line['version']}"
    return f"[{line['source']}](https://github.com/{repository}/{place})"


if __name__ == "__main__":
    about = "Write the results of the founding five's code into tests/simulate/FOREIGN.md."
    full = every_run(read_lines(), read_reasons())
    run_generator("tools.measure.documented_table", about, EVERY_PROGRAM, lambda page: fill(page, full))
