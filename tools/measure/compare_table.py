"""The tables of what `repros compare` finds in healthy pairs and in the silent failures of the catalogue.

The table of pairs comes from `tests/diagnose/compare/pairs.jsonl`, that of the catalogue's silent failures from
`catalogue.jsonl` in the same folder, with what people judged in `judged.toml`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.measure.compare_catalogue import KEPT

ROOT = Path(__file__).parents[2]
JUDGED = ROOT / "tests/diagnose/compare/judged.toml"
"""Why failures show no difference, and of what a first difference is only a consequence."""


def read_lines() -> list[dict[str, Any]]:
    """Return the kept comparisons of the catalogue, in its order."""
    return [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()] if KEPT.exists() else []


def read_judged() -> dict[str, dict[str, str]]:
    """Return the tables `no_numbers`, `no_difference` and `consequence`: a clause by the id of a failure."""
    found: dict[str, dict[str, str]] = tomllib.loads(JUDGED.read_text("utf-8"))
    return found


def catalogue() -> str:
    """Return the tables of the silent failures in Markdown, and the counts before them."""
    lines, judged = read_lines(), read_judged()
    different = [line for line in lines if line["status"] == "different"]
    others = [line for line in lines if line["status"] != "different"]
    missed = [line for line in others if line["repro"] not in judged["no_numbers"]]
    at_cause = [line for line in different if line["repro"] not in judged["consequence"]]
    counts = (
        f"Of {len(lines)} failures, {len(different) + len(missed)} change numbers of a training or an evaluation, or"
        f" what a program reads. Of these, {len(different)} have a first difference, {len(at_cause)} of them where the"
        f" cause is, and {len(missed)} have none.\n\n"
    )
    rows = ["| Repro | Where | First difference | Fixed | Failing | |", "|---|---|---|---|---|---|"]
    rows += [_row(line, judged["consequence"].get(line["repro"], "")) for line in different]
    reasons = judged["no_difference"] | judged["no_numbers"]
    parts = [("Why no difference is seen", missed)]
    parts.append(("Why there is none: it changes no such number", [line for line in others if line not in missed]))
    for title, some in ((title, some) for title, some in parts if some):
        rows += ["", f"| Repro | {title} |", "|---|---|"]
        rows += [f"| {_id(line)} | {reasons.get(line['repro'], '')} |" for line in some]
    return counts + "\n".join(rows) + "\n"


def _id(line: Mapping[str, Any]) -> str:
    """Return the id, with the stack where that is not the usual one."""
    return str(line["repro"]) if line["stack"] == "current" else f"{line['repro']} ({line['stack']})"


def _row(line: Mapping[str, Any], consequence: str) -> str:
    what = f"{line['text']}{', ' + line['rank'] if line['rank'] else ''}"
    values = [value.replace("|", "\\|") for value in line["values"]]
    note = f"a consequence: {consequence}" if consequence else ""
    return f"| {_id(line)} | {line['where'].removeprefix('the ')} | {what} | {values[0]} | {values[1]} | {note} |"
