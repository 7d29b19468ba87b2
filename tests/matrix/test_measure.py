"""Whole campaigns: real environments of a few bytes, real cells, evidence on disk."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from repros import environments, stacks
from repros.engine import catalogue
from repros.engine.pipeline import Observer
from repros.engine.plan import Selection, select
from repros.evidence.files import Measurement, read, write
from repros.evidence.unit import Unit
from repros.matrix.measure import measure
from repros.matrix.worklist import Worklist, estimate, worklist
from repros.model import Result, Stack, Verdict
from repros.model.stack import Size
from tests.conftest import TOYS
from tests.environments.conftest import write_wheel

TORCH = """\
__version__ = "1.0"
class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
"""
"""As much of torch as the probe looks at; the toy itself wants none of it."""

UNIT = Unit("tiny", "RPR-9001", "cpu", "plain")
TODAY = dt.datetime.now().astimezone().date()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack that is known by its name, as the packaged ones are."""
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    write_wheel(tmp_path, "torch", TORCH)
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text(f"--no-index\n--find-links {tmp_path}\ntorch==1.0\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    stack = Stack("tiny", "for tests", python, (), dt.date(2026, 1, 1), lock, Size(2, 2))
    monkeypatch.setattr("repros.engine.pipeline.stack", lambda _: stack)
    assert "tiny" not in stacks.load_stacks()
    return stack


Plan = Callable[[], Worklist]


@pytest.fixture
def plan(tiny: Stack, tmp_path: Path) -> Plan:
    """Plan the toy on the stack against what has been written so far."""
    specs = select(catalogue.load([TOYS / "raises.py"]), Selection(variants=("failing", "fixed", "not_a_fix")))
    return lambda: worklist(specs, [tiny], read(tmp_path / "evidence"))


def run(todo: Worklist, tmp_path: Path, **how: bool) -> list[Result]:
    def keep(one: Measurement) -> None:
        write([one], tmp_path / "evidence")

    return list(measure(todo, tmp_path / "matrix.jsonl", Observer(), keep, jobs=1, **how))


def test_it_makes_an_environment_measures_writes_and_drops(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    results = run(plan(), tmp_path)
    assert [result.verdict for result in results] == [Verdict.REPRODUCED, Verdict.CLEAN, Verdict.UNFIXED]
    assert not environments.place(tiny).exists()
    (found,) = read(tmp_path / "evidence").values()
    assert found.unit == UNIT
    assert found.date == TODAY
    assert found.versions == {"torch": "1.0"}
    assert {name: seen.verdict for name, seen in found.seen.items()} == {
        "failing": Verdict.REPRODUCED,
        "fixed": Verdict.CLEAN,
        "not_a_fix": Verdict.UNFIXED,
    }
    assert found.seen["failing"].signature == "ValueError: the documented failure on {device}"
    assert found.seen["fixed"].signature is None


@pytest.mark.slow
def test_what_is_known_is_not_run_again_unless_asked(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    run(plan(), tmp_path)
    assert [item.fresh for item in plan().items] == [True]
    assert run(plan(), tmp_path) == []
    assert not environments.place(tiny).exists()
    assert len(run(plan(), tmp_path, everything=True)) == 3


@pytest.mark.slow
def test_an_environment_that_was_there_stays_and_one_that_was_left_goes_with_the_next(
    plan: Plan, tiny: Stack, tmp_path: Path
) -> None:
    run(plan(), tmp_path, leave=True)
    assert environments.ready(tiny)
    run(plan(), tmp_path, everything=True)
    assert not environments.place(tiny).exists()
    environments.ensure(tiny, lambda _: None)
    run(plan(), tmp_path, everything=True)
    assert environments.ready(tiny)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        lambda one: replace(one, inputs="of another engine"),
        lambda one: replace(one, seen={"failing": one.seen["failing"]}),
    ],
    ids=["other inputs", "a variant is missing"],
)
def test_what_is_out_of_date_or_incomplete_is_run_again(
    plan: Plan, tmp_path: Path, changed: Callable[[Measurement], Measurement]
) -> None:
    run(plan(), tmp_path)
    (file,) = (tmp_path / "evidence").rglob("*.toml")
    (known,) = read(tmp_path / "evidence").values()
    file.unlink()
    write([changed(known)], tmp_path / "evidence")
    (item,) = plan().items
    assert not item.fresh
    assert estimate([item], read(tmp_path / "evidence")) == known.seconds
    assert len(run(plan(), tmp_path)) == 3
    (again,) = read(tmp_path / "evidence").values()
    assert again.inputs == known.inputs
    assert set(again.seen) == set(known.seen)


@pytest.mark.slow
def test_an_interrupted_campaign_leaves_no_environment_and_goes_on_later(
    plan: Plan, tiny: Stack, tmp_path: Path
) -> None:
    todo = plan()
    running = measure(todo, tmp_path / "matrix.jsonl", Observer(), lambda _: None)
    next(running)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt())  # type: ignore[attr-defined]
    assert not environments.place(tiny).exists()
    assert read(tmp_path / "evidence") == {}
    assert len(run(plan(), tmp_path)) == 3


def test_a_stack_that_cannot_be_made_is_no_evidence(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    todo = plan()
    object.__setattr__(tiny, "cuda", Size(10**18, 10**18))
    object.__setattr__(tiny, "cpu", Size(10**18, 10**18))
    results = run(todo, tmp_path)
    assert {result.verdict for result in results} == {Verdict.UNAVAILABLE}
    assert "it needs 1000000000.0 GB" in results[0].reason
    assert not environments.place(tiny).exists()
    assert read(tmp_path / "evidence") == {}


def test_cells_that_a_stack_cannot_run_are_counted_and_not_planned(tiny: Stack) -> None:
    tiny.lock.write_text("torchvision==1.0\n")
    specs = select(catalogue.load([TOYS / "raises.py"]), Selection())
    todo = worklist(specs, [tiny], {})
    assert (todo.items, todo.impossible) == ((), len(specs))
