"""What is measured at one go, and what its verdicts depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import repros
from repros.model import Device, Repro, Stack

_PACKAGE = Path(repros.__file__).parent

ENGINE = ("inside", "model", "run", "header", "judge.py", "plan.py", "probe.py", "signature.py")
"""All that lies between a script and its verdict. Commands, reports and this room only start and show it."""

SIM = Path("inside", "sim")
"""The simulated accelerator; only its own cells depend on it."""

_SOURCES = {".py", ".cpp", ".h"}


@dataclass(frozen=True, order=True)
class Unit:
    """One repro under one strategy on one device of one stack: all its variants, run with the same inputs."""

    stack: str
    repro: str
    device: str
    strategy: str

    def __str__(self) -> str:
        """Return it as cells are named: `RPR-0001 ddp sim 2023-12`."""
        return f"{self.repro} {self.strategy} {self.device} {self.stack}"


def inputs(repro: Repro, stack: Stack, device: Device) -> str:
    """Return a digest of everything that a unit's verdicts depend on, the machine apart.

    That is the script with its header, the stack's Python and lock, the engine's sources, and on `sim` those of the
    simulated accelerator. Unchanged inputs need no further run.
    """
    parts = [repro.path.read_bytes(), stack.python.encode(), stack.lock.read_bytes(), engine().encode()]
    if device is Device.SIM:
        parts.append(simulator().encode())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


@cache
def engine() -> str:
    """Return a digest of the engine's sources."""
    places = [_PACKAGE / name for name in ENGINE]
    files = [file for place in places for file in (place.rglob("*") if place.is_dir() else [place])]
    return _digest(file for file in files if not file.is_relative_to(_PACKAGE / SIM))


@cache
def simulator() -> str:
    """Return a digest of the simulated accelerator's sources."""
    return _digest((_PACKAGE / SIM).rglob("*"))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.suffix in _SOURCES):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(_PACKAGE)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
