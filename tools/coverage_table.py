"""`nox -s coverage`: the share of lines and branches that the tests run, of each room and of all.

`python -m tools.coverage_table FILE`, with a file of `coverage json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path, PurePath
from typing import Any

_COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def table(report: dict[str, Any]) -> str:
    """Return a line for each room, and one for all."""
    rooms: dict[str, Counter[str]] = {}
    for path, file in sorted(report["files"].items()):
        counts = rooms.setdefault(_room(PurePath(path)), Counter())
        counts.update({name: file["summary"][name] for name in _COUNTS})
    rooms["total"] = sum(rooms.values(), Counter())
    lines = [f"{'room':20}{'lines':>8}{'branches':>10}{'covered':>9}"]
    lines += [
        f"{name:20}{room['num_statements']:8}{room['num_branches']:10}{_share(room):9.1%}"
        for name, room in rooms.items()
    ]
    return "\n".join(lines)


def _room(path: PurePath) -> str:
    """Return the folder in `repros`; all folders `inside` are one room, which mostly runs where nothing measures."""
    if "inside" in path.parts:
        return "inside"
    _, first, *rest = path.parts
    return first if rest else "repros"


def _share(room: Counter[str]) -> float:
    """Return the share as coverage.py has it: of lines and branches together."""
    possible = room["num_statements"] + room["num_branches"]
    return (room["covered_lines"] + room["covered_branches"]) / possible if possible else 1.0


if __name__ == "__main__":
    sys.stdout.write(table(json.loads(Path(sys.argv[1]).read_text("utf-8"))) + "\n")
