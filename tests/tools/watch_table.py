"""The table of what `repros watch` finds, from the measurements in `tests/watch/measured.jsonl`.

`python -m tests.tools.watch_table` writes it into `docs/watch.md`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from repros.engine import catalogue
from repros.watch.identify import checks_of

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "tests/watch/measured.jsonl"
"""Lines of `python -m tests.tools.watch_catalogue`."""
PAGE = ROOT / "docs/watch.md"

_BEGIN, _END = "<!-- measured: begin (python -m tests.tools.watch_table) -->\n", "<!-- measured: end -->"


def table(lines: list[dict[str, Any]]) -> str:
    """Return the table in Markdown: a row for each variant that was run."""
    rows = ["| Repro | Variant | Stack | Fails | Found | Named | Step |", "|---|---|---|---|---|---|---|"]
    for line in sorted(lines, key=lambda one: (one["repro"], one["stack"])):
        wanted = [one for one in line["found"] if one["check"] in line["expected"]]
        others = [one["check"] for one in line["found"] if one["check"] not in line["expected"]]
        found = ", ".join([*(one["check"] for one in wanted), *(f"({name})" for name in others)])
        ids = [one["ids"][0] for one in wanted if one["ids"]]
        steps = [str(one["step"]) for one in wanted if one["step"]]
        missed = "**missed**" if line["fails"] and not wanted else ""
        cells = [
            *(line["repro"], line["variant"], line["stack"], "yes" if line["fails"] else ""),
            *(" ".join(filter(None, [found, missed])), ", ".join(ids), ", ".join(steps)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def fill(page: str, lines: list[dict[str, Any]]) -> str:
    """Return the page with the table between its marks."""
    head, _, rest = page.partition(_BEGIN)
    return head + _BEGIN + table(lines) + _END + rest.partition(_END)[2]


def read_measured() -> list[dict[str, Any]]:
    """Return the measurements, each with the checks that its header says will find it (`expected`)."""
    repros = catalogue.load()
    lines = [json.loads(line) for line in MEASURED.read_text("utf-8").splitlines()]
    for line in lines:
        repro = repros.find(line["repro"])
        variant = repro.variant(line["variant"])
        line["expected"] = list(checks_of(repro, variant)) if line["fails"] and variant is not None else []
    return lines


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text("utf-8"), read_measured()), "utf-8")
