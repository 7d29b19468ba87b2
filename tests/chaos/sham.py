"""Cells of the toy, on this interpreter or on one with torch; as a pytest plugin, they need no environment made."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from pathlib import Path

from repros.engine import header
from repros.model import Cell, Device, Environment

TARGET = Path(__file__).parent / "toys" / "target.py"
ROOT = Path(__file__).parents[2]


def environment(python: Path, name: str | None = None, *, sim: bool = True) -> Environment:
    """Describe an interpreter as one that has torch, whether it has: only the toy's mode `gloo` imports it."""
    versions = {"torch": "2.13.0"}
    return Environment(name or str(python), python, platform.python_version(), versions, {Device.CPU: 2})


def cell(mode: str, variant: str, deadline: float, python: Path | None = None) -> Cell:
    """Return a cell of the toy; the mode is what it does on its way."""
    repro = replace(header.read(TARGET), deadline=deadline)
    chosen = repro.variant(variant)
    assert chosen is not None
    return Cell(repro, chosen, mode, Device.CPU, environment(python or Path(sys.executable), "toys"), repro.processes)


def pretend() -> None:
    """Have every interpreter taken at its word."""

    def probe(python: Path, name: str | None = None, *, sim: bool = True) -> Environment:
        return environment(Path(sys.executable), str(python))

    environment.probe = probe  # type: ignore[attr-defined]


pytest_configure = pretend

if __name__ == "__main__":
    from repros.cli import main

    pretend()
    sys.exit(main(sys.argv[1:]))
