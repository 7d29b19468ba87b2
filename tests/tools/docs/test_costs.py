"""The table of what each stack costs to measure."""

from __future__ import annotations

from dataclasses import replace

from repros.engine.evidence import Unit
from repros.engine.stacks import load_stacks
from repros.model import Device
from repros.model.stack import Size
from repros.text.failures import costs_table
from tests.engine.evidence.samples import MEASUREMENT


def test_each_stack_is_a_row_and_the_totals_are_one() -> None:
    old, new = (load_stacks()[name] for name in ("2023-05", "current"))
    old = replace(old, cuda=Size(2_300_000_000, 4_500_000_000), cpu=None)
    new = replace(new, cuda=Size(2_800_000_000, 5_000_000_000), cpu=Size(300_000_000, 1_000_000_000))
    units = [Unit("2023-05", repro, Device.CPU, "ddp") for repro in ("RPR-0001", "RPR-0002")]
    evidence = {unit: replace(MEASUREMENT, unit=unit) for unit in units}
    cells = 2 * len(MEASUREMENT.variants)
    assert costs_table([old, new], evidence) == (
        "| Stack | torch | Lightning | Cells | GB to download | GB on disk |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        f"| 2023-05 | 2.0.1 | 2.0.9 | {cells} | 2.3 | 4.5 |\n"
        "| current | 2.15.0 | 2.6.6 | 0 | 2.8 (0.3) | 5.0 (1.0) |\n"
        f"| all |  |  | {cells} | 5.1 | 9.5 |\n"
    )
