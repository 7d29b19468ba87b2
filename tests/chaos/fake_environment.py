"""Cells of the toy on this interpreter or on one with torch; as a pytest plugin, it makes environments unnecessary."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from repros.engine import environment, environments, header
from repros.model import Cell, Device, Environment, Repro

TARGET = Path(__file__).parent / "toys" / "target.py"
ROOT = Path(__file__).parents[2]


@cache
def toy() -> Repro:
    """Read the toy's header, once: workers of this process must not parse it at the same time.

    CPython 3.11.7 counts the depth of its recursion for all threads of `ast.parse` together, and raises "SystemError:
    AST constructor recursion depth mismatch".
    """
    return header.read(TARGET)


def cell(mode: str, variant: str, deadline: float, python: Path | None = None) -> Cell:
    """Return a cell of the toy; its strategy is the mode, which is what the toy does before it ends."""
    repro = replace(toy(), deadline=deadline)
    chosen = repro.variant(variant)
    assert chosen is not None
    described = _describe(python or Path(sys.executable), "toys")
    return Cell(repro, chosen, mode, Device.CPU, described, repro.processes)


def replace_probe() -> None:
    """Make every interpreter count as one with torch, unprobed, and this one as the environment of every stack."""

    def probe(python: Path, stack: str | None = None, **options: object) -> Environment:
        return _describe(Path(sys.executable), str(python))

    environment.probe = probe  # type: ignore[attr-defined]
    environments.ensure = lambda stack, report_progress: Path(sys.executable)


def _describe(python: Path, name: str) -> Environment:
    """Describe an interpreter as one with torch, even if it has none: only the toy's mode `gloo` imports it."""
    return Environment(name, python, platform.python_version(), {"torch": "2.13.0"}, {Device.CPU: 2})


pytest_configure = replace_probe

if __name__ == "__main__":
    from repros.cli import main

    replace_probe()
    sys.exit(main(sys.argv[1:]))
