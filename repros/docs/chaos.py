"""What `docs/failures.md` says of random faults: the figures of the kept run of `nox -s chaos`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import repros

KEPT = Path(repros.__file__).parents[1] / "tests/chaos/kept.json"
"""In a checkout: what `nox -s chaos -- --out tests/chaos/kept.json` has written."""
_WIDTH = 120


def read_kept_run(file: Path = KEPT) -> dict[str, Any]:
    """Return the figures of the kept run."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def faults_sentence(run: Mapping[str, Any]) -> str:
    """Return the sentence on a run's faults, as lines of a page.

    Args:
        run: the figures as `tests.chaos` writes them: `injected`, a number; `outcomes`, of each kind of fault;
            `violations`, a list.
    """
    violations = len(run["violations"])
    sentence = (
        f"Of {run['injected']} random faults of {len(run['outcomes'])} kinds (`nox -s chaos`: killed ranks, servers and"
        " runners, two runners on one file, full disks, taken ports, damaged files, environments and accelerators, a"
        f" clock that jumps, a terminal that closes, no `/proc`), {violations or 'none'} led to a wrong verdict, a lost"
        " result or a process left behind."
    )
    return textwrap.fill(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
