"""`current` turned over to another stack: what is kept of it, under which name, and where that name is written."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import evidence
from repros.engine.evidence import Unit
from repros.engine.stacks import stack
from repros.model import Device
from repros.model.errors import ReprosError
from repros.model.settings import EVIDENCE
from tests.package_catalogue import load
from tests.package_index import Serve, release_pages
from tools.turn_over import choose_name, find_loss, rename_in, turn_over

ROOT = Path(__file__).parents[2]
KNOWN = evidence.read(EVIDENCE)
COPY = """
from dataclasses import replace
from repros.engine import evidence
from repros.engine.stacks import stack
from repros.engine.stacks.write import write_stack
former = stack("current")
lock = former.lock.read_text().replace("stack current on", "stack next on")
write_stack(replace(former, name="next", about="x", lock=former.lock.with_name("next.lock.txt")), lock)
measured = [found for unit, found in evidence.read().items() if unit.stack == "current"]
evidence.write([replace(found, unit=replace(found.unit, stack="next")) for found in measured])
"""
TURN = """
from pathlib import Path
from tools.turn_over import turn_over
print(*turn_over("next", Path.cwd()), sep="\\n")
"""


def test_without_news_the_new_stack_takes_the_place(tmp_path: Path) -> None:
    """A copy of `current` becomes `current`: nothing but the layout of its file has changed then."""
    clone = tmp_path / "clone"

    def call(*command: str) -> list[str]:
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=300, check=True)
        return done.stdout.splitlines()

    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True, timeout=300)
    assert call(sys.executable, "-c", COPY) == []
    assert len(call(sys.executable, "-c", TURN)) == 2, "it tells that the former one is not kept"
    assert set(call("git", "status", "--porcelain")) <= {" M repros/stacks/current.toml"}


def test_what_would_be_lost_is_a_reason_to_keep_it() -> None:
    catalogue, current = load(), stack("current")
    assert find_loss(current, current, catalogue, KNOWN) is None
    assert find_loss(stack("2026-01"), current, catalogue, KNOWN) == "it has torch 2.10.0, and not 2.15.0"
    unit = Unit("next", "RPR-0023", Device.CPU, "auto")
    old = replace(unit, stack="current")
    after = replace(KNOWN[replace(unit, stack="2025-11")], unit=unit)
    new = replace(current, name="next")
    assert find_loss(current, new, catalogue, {old: KNOWN[old], unit: after}) == "RPR-0023 ended differently there"
    assert find_loss(current, new, catalogue, {old: KNOWN[old]}) == "RPR-0023 auto cpu current was measured there alone"


def test_its_name_is_the_month_of_its_torch_or_its_last_day(serve: Serve) -> None:
    former = stack("2026-07")
    serve(release_pages({"torch": {"2.13.0": dt.date(2026, 7, 8), "2.13.1": dt.date(2026, 8, 9)}}))
    assert choose_name(former, ("current",)) == "2026-07"
    assert choose_name(former, ("current", "2026-07")) == "2026-11-17"
    with pytest.raises(ReprosError, match=r"^2026-07 and 2026-11-17\b"):
        choose_name(former, ("2026-07", "2026-11-17"))


@pytest.mark.parametrize(
    ("place", "before", "after", "moved"),
    [
        (
            "repros/catalogue/amp/a.py",
            '# home = "current"\nx = "current"\n',
            '# home = "2026-10"\nx = "current"\n',
            None,
        ),
        ("tests/diagnose/match/golden/x-hand-current.log", "on current", "on current", "x-hand-2026-10.log"),
        (
            "tests/diagnose/match/golden/index.toml",
            'name = "x-hand-current"\nstack = "current"\n# the current one\n',
            'name = "x-hand-2026-10"\nstack = "2026-10"\n# the current one\n',
            None,
        ),
        ("tools/bench/kept.json", '{"label": "RPR-0001 fixed current"}', '{"label": "RPR-0001 fixed 2026-10"}', None),
        (
            "repros/evidence/bisections/RPR-0002-accelerate-current.json",
            '{"stack": "current"}',
            '{"stack": "2026-10"}',
            "RPR-0002-accelerate-2026-10.json",
        ),
        ("docs/usage.md", '"current"', '"current"', None),
    ],
)
def test_its_name_is_written_where_something_was_seen(
    place: str, before: str, after: str, moved: str | None, tmp_path: Path
) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(before, "utf-8")
    assert rename_in(file, tmp_path, "2026-10") == (before != after or moved is not None)
    assert [other.name for other in file.parent.iterdir()] == [moved or file.name]
    assert file.with_name(moved or file.name).read_text("utf-8") == after


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("current", "'current'"),
        ("2023-1", r"'2023-1'.*'2023-12'"),
    ],
)
def test_a_stack_that_cannot_become_current_is_refused(name: str, problem: str) -> None:
    with pytest.raises(ReprosError, match=problem):
        next(turn_over(name))
