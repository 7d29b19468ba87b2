"""Which cases of a test a run takes: a few of long tests, and with a seed a sample of tests for each script.

A test for each script then runs for the scripts that have changed since the base of `tools/guards.py`, and for a tenth
of the others; for all of them if its own folder or the folder that it tests has changed. The few cases of a long test
are evenly spread without a seed, and drawn with one. The seed of `.ci/run` is the commit's hash, so that other cases
run at each commit. `--long` runs every case.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import pytest

from tools.guards import ROOT, changed_files, find_base, is_guarded

_PART = 10
"""The share of the scripts without a change: one in ten."""


def left_out(items: Iterable[pytest.Item], seed: str | None, changed: Collection[str] | None) -> set[pytest.Item]:
    """Return the cases that a run leaves out.

    Args:
        items: all cases.
        seed: what the choice of cases depends on; None for all scripts, and always the same cases of long tests.
        changed: files that have changed, relative to the checkout; None if that is unknown, so that all scripts run.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: set[pytest.Item] = set()
    for cases in tests.values():
        if marker := cases[0].get_closest_marker("long"):
            found |= {*cases} - {*_few(cases, marker.kwargs.get("keep", 0), seed)}
        elif seed is not None and changed is not None and cases[0].get_closest_marker("of_each_script"):
            found |= {*cases} - {*_sample(cases, seed, changed)}
    return found


def find_changed() -> list[str] | None:
    """Return the files that have changed since the base; None if there is no history."""
    base = find_base(os.environ)
    return changed_files(base[0]) if base else None


def _few(cases: Sequence[pytest.Item], kept: int, seed: str | None) -> list[pytest.Item]:
    """Return as many cases as are kept: drawn with the seed, or evenly spread."""
    kept = min(kept, len(cases))
    if seed is not None:
        return sorted(cases, key=lambda case: _draw(case, seed))[:kept]
    return [cases[(2 * place + 1) * len(cases) // (2 * kept)] for place in range(kept)]


def _sample(cases: Sequence[pytest.Item], seed: str, changed: Collection[str]) -> Sequence[pytest.Item]:
    """Return the cases of changed scripts and a sample of the others; all if the test or what it tests has changed."""
    test = cases[0].path.relative_to(ROOT).as_posix()
    own = test.rpartition("/")[0]
    folders = () if own == "tests" else (f"{own}/", f"repros/{own.removeprefix('tests/')}/")
    if any(is_guarded(file, (test, *folders)) for file in changed):
        return cases
    names = {name for file in changed if file.startswith("repros/catalogue/") for name in _names(ROOT / file)}
    return [
        case for case in cases if _draw(case, seed) % _PART == 0 or any(name in case.nodeid.lower() for name in names)
    ]


def _names(script: Path) -> set[str]:
    """Return the names that a script has in the cases: its slug and its id; none if it is gone, or no script."""
    if script.suffix != ".py" or not script.is_file():
        return set()
    ids = re.findall(r'^# id = "(.+)"$', script.read_text("utf-8"), re.MULTILINE)
    return {name.lower() for name in (script.stem, *ids)}


def _draw(case: pytest.Item, seed: str) -> int:
    """Return a number that is as if drawn at random, for each case and seed its own."""
    return int.from_bytes(blake2b(f"{seed} {case.nodeid}".encode()).digest(), "big")
