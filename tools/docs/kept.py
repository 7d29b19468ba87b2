"""Sentences of `docs/failures.md` on speed and random faults, from recorded figures."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
BENCH = _ROOT / "tools/bench/kept.json"
"""Written by `nox -s bench -- --out tools/bench/kept.json`."""
CHAOS = _ROOT / "tests/chaos/kept.json"
"""Written by `nox -s chaos -- --out tests/chaos/kept.json`."""
_WIDTH = 120


def read_kept_run(file: Path) -> dict[str, Any]:
    """Return the figures of a recorded run."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def speed_sentence(run: Mapping[str, Any]) -> str:
    """Return the sentence on the time that a cell takes by hand and from a warm server, as lines of a page.

    Args:
        run: the figures as `tools.bench` writes them: `at`, a time; `rounds`; `machine`; `cells`, with seconds.
    """

    def medians(cell: Mapping[str, Any]) -> str:
        by_hand, warm = (cell[launch]["seconds"]["median"] for launch in ("by hand", "warm"))
        return f"`{cell['label']}` took {by_hand:.1f} s by hand and {warm:.1f} s warm"

    return fill_lines(
        f"On {run['at'][:10]}, {'; '.join(map(medians, run['cells']))} (medians of {run['rounds']} rounds on"
        f" {run['machine']['processors']} processors)."
    )


def faults_sentence(run: Mapping[str, Any]) -> str:
    """Return the sentence on a run's faults, as lines of a page.

    Args:
        run: the figures as `tests.chaos` writes them: `injected`, a number; `outcomes`, of each kind of fault;
            `violations`, a list.
    """
    violations = len(run["violations"])
    return fill_lines(
        f"Of {run['injected']} random faults of {len(run['outcomes'])} kinds (`nox -s chaos`: killed and stopped ranks,"
        " servers, probes and runners, signals from outside, two runners on one file or cache, full disks, a read-only"
        " cache, no network or one that is lost in a download, taken ports, damaged files, environments and"
        " accelerators, a clock that jumps, a terminal that closes, no `/proc`), "
        f"{violations or 'none'} led to a wrong verdict, a lost result or a process left behind."
    )


def fill_lines(sentence: str) -> str:
    """Return a sentence as lines of a page."""
    return textwrap.fill(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
