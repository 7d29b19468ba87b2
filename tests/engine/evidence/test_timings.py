"""How long cells took, from the evidence: shared out among the cells of a unit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine.evidence import Evidence, Unit, VariantVerdict, files
from repros.engine.evidence.timings import recorded_timings, timings
from repros.engine.schedule import Timing
from repros.model import Cell, Device, End, Ending, ExpectedOutcome, Signature, Verdict
from repros.model.settings import PACKAGE
from tests import factories as make
from tests.engine.evidence.samples import MEASUREMENT

RAN = VariantVerdict(Verdict.CLEAN)
HANG = make.variant("failing", signature=Signature(ends=End(Ending.TIMED_OUT)))
FIXED = make.variant("fixed", ExpectedOutcome.PASSES)
HANGING = make.repro("RPR-0002", variants=(HANG, replace(HANG, name="also"), FIXED))


def measured(repro: str, seconds: float, processor: float | None, *variants: str, launch: str = "warm") -> Evidence:
    unit = Unit("current", repro, Device.CPU, "ddp")
    seen = dict.fromkeys(variants, RAN)
    return {unit: replace(MEASUREMENT, unit=unit, seconds=seconds, processor=processor, variants=seen, launch=launch)}


KNOWN = (
    measured("RPR-0001", 3.0, 1.0, "failing", "fixed")
    | measured("RPR-0002", 92.0, 0.6, "failing", "also", "fixed")
    | measured("RPR-0003", 4.0, None, "failing", "fixed")
    | measured("RPR-0004", 40.0, 9.0, "failing", launch="cold")
)


def find(cell: Cell) -> Timing:
    found = timings(KNOWN)(cell)
    assert found is not None
    return found


def test_the_cells_of_a_unit_share_its_time() -> None:
    assert timings(KNOWN)(make.cell()) == Timing(1.5, 0.5)


def test_what_is_over_was_waited_by_those_that_hang() -> None:
    usual = 2.0  # the median of 1.5, 2.0 and 30.7 seconds
    assert find(make.cell(repro=HANGING, variant=FIXED)).seconds == usual
    assert find(make.cell(repro=HANGING, variant=HANG)).seconds == (92.0 - usual) / 2
    healthy = replace(HANG, affected=make.conditions("torch<2"))
    repro = replace(HANGING, variants=(healthy, replace(healthy, name="also"), FIXED))
    assert find(make.cell(repro=repro, variant=healthy)).seconds == pytest.approx(92.0 / 3)


def test_another_stack_or_a_usual_cell_stands_for_what_was_not_measured() -> None:
    elsewhere = make.cell(environment=make.environment("/home/me/bin/python"))
    assert find(elsewhere) == find(make.cell())
    never = find(make.cell(repro=make.repro("RPR-0099")))
    assert (never.seconds, never.processor) == (16.333333333333334, 0.5)
    assert timings({})(make.cell()) is None


def test_damaged_evidence_gives_no_times_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2023-12").mkdir()
    (tmp_path / "2023-12/ledger.toml").write_text("nothing")
    monkeypatch.setattr(files, "EVIDENCE", tmp_path)
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    assert recorded_timings(PACKAGE)(make.cell()) is None
    assert recorded_timings(PACKAGE, KNOWN)(make.cell()) == Timing(1.5, 0.5)
