from __future__ import annotations

from repros.engine.evidence import Unit
from repros.model import Device
from tests import factories as make

UNIT = Unit("current", "RPR-0001", Device.CPU, "ddp")


def test_a_unit_and_its_cells_have_the_label_of_a_cell() -> None:
    assert str(UNIT) == "RPR-0001 ddp cpu current"
    assert UNIT.cell_label("failing") == make.cell().label == "RPR-0001 failing ddp cpu current"


def test_the_unit_of_a_cell() -> None:
    assert Unit.from_cell(make.cell()) == UNIT
