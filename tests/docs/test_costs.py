"""The table of what each stack costs to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from repros.docs.tables import costs_table
from repros.evidence import Unit
from repros.model import Device
from repros.model.stack import Size
from repros.stacks import load_stacks
from tests.evidence.samples import MEASUREMENT


def test_each_stack_is_a_row_and_the_totals_are_one(tmp_path: Path) -> None:
    old, new = (load_stacks()[name] for name in ("2023-05", "current"))
    old = replace(old, cuda=Size(2_300_000_000, 4_500_000_000), cpu=None)
    new = replace(new, cuda=Size(2_800_000_000, 5_000_000_000), cpu=Size(300_000_000, 1_000_000_000))
    units = [Unit("2023-05", repro, Device.CPU, "ddp") for repro in ("RPR-0001", "RPR-0002")]
    evidence = {unit: replace(MEASUREMENT, unit=unit, seconds=4.5) for unit in units}
    cells = 2 * len(MEASUREMENT.variants)
    (tmp_path / "2023-05").mkdir()
    (tmp_path / "2023-05" / "RPR-0001.toml").write_text("x" * 1600)
    assert costs_table([old, new], evidence, tmp_path) == (
        "| Stack | torch | Lightning | Cells | Seconds | A cell | GB to download | GB on disk | kB of evidence |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        f"| 2023-05 | 2.0.1 | 2.0.9 | {cells} | 9 | {9 / cells:.1f} | 2.3 | 4.5 | 2 |\n"
        "| current | 2.13.0 | 2.6.6 | 0 | 0 | · | 2.8 (0.3) | 5.0 (1.0) | 0 |\n"
        f"| all |  |  | {cells} | 9 | {9 / cells:.1f} | 5.1 | 9.5 | 2 |\n"
    )
