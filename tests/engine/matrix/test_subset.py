"""The part of the catalogue that a quick check runs, on the real headers, stacks and evidence."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import evidence
from repros.engine.environment import Targets
from repros.engine.evidence import Evidence
from repros.engine.matrix.subset import Reason, Subset, SubsetOptions, draw_subset
from repros.engine.matrix.worklist import build_worklist
from repros.engine.plan import CellSpec, Selection, select
from repros.model import Device
from repros.model.errors import UnknownNameError
from tests.package_catalogue import load

NOTHING = SubsetOptions(stale=False, always=(), share=0.0, seed="a")
TARGETS = Targets(("home", "2026-07"))
STACKS = ("2023-12", "2026-07")


@pytest.fixture(scope="module")
def specs() -> list[CellSpec]:
    catalogue = load()
    ids = tuple(repro.id for repro in catalogue if repro.home in STACKS)[:8]
    return select(catalogue, Selection(ids, devices=(Device.CPU, Device.SIM)))


@pytest.fixture(scope="module")
def fresh(specs: list[CellSpec]) -> Evidence:
    """Evidence of all specs with the inputs that the code has now, whatever the repository's says."""
    known = evidence.read()
    entries = build_worklist(specs, [TARGETS.known[name] for name in STACKS], known).entries
    return {e.unit: replace(e.last, inputs=e.inputs) for e in entries if e.last is not None}


def pairs(subset: Subset) -> set[tuple[str, str]]:
    return {(spec.repro.id, stack.name) for spec in subset.specs for stack in subset.targets.stacks_of(spec.repro)}


def test_fresh_evidence_leaves_nothing_to_run(specs: list[CellSpec], fresh: Evidence) -> None:
    subset = draw_subset(specs, TARGETS, fresh, replace(NOTHING, stale=True))
    assert (subset.specs, pairs(subset)) == ([], set())
    assert {why for why, number in subset.cells.items() if number} == {Reason.LEFT_OUT}


def test_a_stale_cell_runs_its_repro_on_its_stack_alone(specs: list[CellSpec], fresh: Evidence) -> None:
    unit = next(unit for unit in fresh if unit.stack == "2026-07" and unit.device is Device.SIM)
    changed = {**fresh, unit: replace(fresh[unit], inputs="other")}
    subset = draw_subset(specs, TARGETS, changed, replace(NOTHING, stale=True))
    assert pairs(subset) == {(unit.repro, "2026-07")}
    assert {spec for spec in specs if spec.repro.id == unit.repro} == {*subset.specs}
    del changed[unit]
    assert pairs(draw_subset(specs, TARGETS, changed, replace(NOTHING, stale=True))) == {(unit.repro, "2026-07")}


def test_a_named_repro_runs_on_all_its_stacks(specs: list[CellSpec], fresh: Evidence) -> None:
    slug = specs[0].repro.slug
    subset = draw_subset(specs, TARGETS, fresh, replace(NOTHING, always=(slug, "RPR-0002")))
    expected = {
        (repro, stack) for repro, stack in pairs(Subset(specs, TARGETS, {})) if repro in {"RPR-0001", "RPR-0002"}
    }
    assert pairs(subset) == expected
    with pytest.raises(UnknownNameError, match="RPR-0099"):
        draw_subset(specs, TARGETS, fresh, replace(NOTHING, always=("RPR-0099",)))


def test_a_sample_has_its_size_and_depends_on_the_seed_alone(specs: list[CellSpec], fresh: Evidence) -> None:
    tenth = replace(NOTHING, stale=True, share=0.1)
    first, again = (pairs(draw_subset(chosen, TARGETS, fresh, tenth)) for chosen in (specs, specs[::-1]))
    possible = {(unit.repro, unit.stack) for unit in fresh} & pairs(Subset(specs, TARGETS, {}))
    assert first == again <= possible
    assert len(possible) / 10 <= len(first) < len(possible) / 10 + 1
    own = Targets(python=Path(sys.executable))
    drawn = [draw_subset(specs, own, {}, replace(NOTHING, share=0.1, seed=str(number))).specs for number in range(60)]
    assert {spec.repro for some in drawn for spec in some} == {spec.repro for spec in specs}, "sooner or later"


def test_the_parts_add_up(specs: list[CellSpec], fresh: Evidence) -> None:
    unit = next(unit for unit in fresh if unit.stack == "2026-07" and unit.repro == "RPR-0003")
    changed = {**fresh, unit: replace(fresh[unit], inputs="other")}
    some = draw_subset(specs, TARGETS, changed, SubsetOptions(stale=True, always=("RPR-0001",), share=0.2, seed="b"))
    assert all(some.cells[why] for why in Reason)
    everything = draw_subset(specs, TARGETS, changed, replace(NOTHING, share=1.0))
    assert everything.cells[Reason.SAMPLED] == sum(everything.cells.values()) == sum(some.cells.values())


def test_an_interpreter_of_the_user_s_has_no_evidence(specs: list[CellSpec], fresh: Evidence) -> None:
    own = Targets(python=Path(sys.executable))
    assert draw_subset(specs, own, fresh, replace(NOTHING, stale=True)).specs == specs
    some = draw_subset(specs, own, fresh, replace(NOTHING, share=0.1))
    assert len({spec.repro for spec in some.specs}) == 1
    assert some.targets is own
