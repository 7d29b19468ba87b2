"""Results of foreign programs on simulated GPUs, which `python -m tools.measure.simulate_table` writes.

The kept results in `tests/simulate/foreign.jsonl` give a row for each repository or package in `docs/simulate.md`, and
a row for each program in `tests/simulate/FOREIGN.md`; `tests/simulate/foreign_causes.toml` has the causes of failures.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.page import fill_part
from tools.docs.generator import run_generator
from tools.measure.foreign_programs.place import read_kept
from tools.measure.foreign_programs.simulated import KEPT

ROOT = Path(__file__).parents[2]
EVERY_PROGRAM = KEPT.with_name("FOREIGN.md")
CAUSES = KEPT.with_name("foreign_causes.toml")

_WIDTH = 140
_OUTCOMES = {
    "equal": "equal",
    "close": "close",
    "different": "different",
    "no numbers": "prints none",
    "differs on the CPU": "differ between two runs on the CPU",
    "not compared": "needs a GPU",
}


def read_lines() -> list[dict[str, Any]]:
    """Return the kept results, one for each program."""
    return read_kept(KEPT)


def read_causes() -> dict[tuple[str, str], str]:
    """Return why programs failed, by source and name."""
    entries = tomllib.loads(CAUSES.read_text("utf-8"))["cause"]
    return {(entry["source"], name): entry["why"] for entry in entries for name in entry["programs"]}


def kind(line: dict[str, Any]) -> str:
    """Return how a program did: a heading of the table."""
    if line["exit"] or line["cpu_exit"] or not line["on_device"]:
        return "failed"
    outcome: str = line["outcome"]
    return outcome if outcome in {"equal", "close", "different"} else "ran"


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """Return the sentence and the table by repository and package, in Markdown."""
    kinds = [kind(line) for line in lines]
    ran = len(lines) - kinds.count("failed")
    largest = max((line["difference"] for line in lines if kind(line) == "close"), default=0.0)
    head = (
        f"{ran} of {len(lines)} programs ran; {sum(line['gpus'] > 1 for line in lines)} were given several GPUs. Of"
        f" those whose numbers can be compared with the CPU's, {kinds.count('equal')} printed the same to the last"
        f" digit, {kinds.count('close')} differed by at most {largest:.0e} of the largest number of the same name, and"
        f" {kinds.count('different')} by more."
    )
    rows = ["| From | Version | torch | Programs | Equal | Close | Different | Ran | Failed |"]
    rows += ["|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for source in sorted({line["source"] for line in lines}, key=str.lower):
        its = [line for line in lines if line["source"] == source]
        counts = [
            [kind(line) for line in its].count(outcome) for outcome in ("equal", "close", "different", "ran", "failed")
        ]
        versions = [
            _in_order(_version(line) for line in its),
            _in_order(line["torch"].partition("+")[0] for line in its),
        ]
        rows.append(f"| {' | '.join([_link(its[0]), *versions, str(len(its)), *map(_count, counts)])} |")
    return f"{textwrap.fill(head, _WIDTH)}\n\n" + "\n".join(rows) + "\n"


def every_program(lines: Sequence[dict[str, Any]], causes: dict[tuple[str, str], str]) -> str:
    """Return the page with a row for each program, in Markdown."""
    rows = ["| From | Program | Command | GPUs | Exit | Numbers | Why |", "|---|---|---|--:|--:|---|---|"]
    for line in lines:
        found = _OUTCOMES[line["outcome"]] if not (line["exit"] or line["cpu_exit"]) else ""
        found += f", {line['compared']} compared" if line["outcome"] in {"equal", "close", "different"} else ""
        found += f", by {line['difference']:.0e}" if line["outcome"] in {"close", "different"} else ""
        why = causes.get((line["source"], line["program"]), "")
        command = line["command"].replace("|", "\\|")
        cells = [line["source"], line["program"], f"`{command}`", str(line["gpus"]), str(line["exit"]), found, why]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _count(number: int) -> str:
    return str(number) if number else ""


def _in_order(versions: Iterable[str]) -> str:
    """Return different versions, from the oldest to the newest."""
    parts = {version: [int(part) if part.isdecimal() else 0 for part in version.split(".")] for version in versions}
    return ", ".join(sorted(parts, key=parts.__getitem__))


def _link(line: dict[str, Any]) -> str:
    source: str = line["source"]
    return f"[{source}](https://github.com/{source})" if "/" in source else source


def _version(line: dict[str, Any]) -> str:
    version: str = line["version"]
    return version[:12] if "/" in line["source"] else version.rsplit(maxsplit=1)[-1]


def fill(page: str, body: str) -> str:
    """Return the page with its generated part updated."""
    return fill_part(page, "foreign", body)


if __name__ == "__main__":
    about = "Write the results of foreign programs on simulated GPUs into tests/simulate/FOREIGN.md."
    full = every_program(read_lines(), read_causes())
    run_generator("tools.measure.simulate_table", about, EVERY_PROGRAM, lambda page: fill(page, full))
