"""The error table, evaluated on the real device: `placement.json`."""

from __future__ import annotations

from repros.simulated_gpus.tools.placement.observe import record

from . import files

if __name__ == "__main__":
    files.write(files.out_option().out / "placement.json", record("cuda"))
