from __future__ import annotations

from repros.evidence.unit import Unit


def test_a_unit_reads_as_cells_do() -> None:
    assert str(Unit("2023-12", "RPR-0001", "sim", "ddp")) == "RPR-0001 ddp sim 2023-12"
