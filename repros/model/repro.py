"""What a script's header says: one documented failure and the ways to run it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement


class Device(StrEnum):
    """The evidence tier a cell ran on."""

    CUDA = "cuda"
    """A real GPU."""
    SIM = "sim"
    """The simulated accelerator of :mod:`repros.inside.sim`."""
    CPU = "cpu"
    """Host tensors; collectives over Gloo."""


class Outcome(StrEnum):
    """What a variant does on a stack that has the failure."""

    FAILS = "fails"
    PASSES = "passes"


@dataclass(frozen=True)
class Signature:
    """What the documented failure looks like, in one of two forms: an exception, or an ending without one."""

    raises: str | None = None
    """Class name of the exception, plain (`RuntimeError`) or dotted; a base class of what was raised counts."""
    match: tuple[str, ...] = ()
    """Alternative texts; the message, normalised (:func:`repros.engine.signature.normalise`), contains one of them."""
    ends: str | None = None
    """`hang`, `exit N` or `signal SIGNAME`, for a failure that raises nothing."""
    frames: tuple[str, ...] = ()
    """Functions, `new_forward` or `accelerate/hooks.py:new_forward`, one of which stands on the stack whenever the
    message is due to this failure; no part of a verdict, but what tells a user's log from others with the message."""

    def __str__(self) -> str:
        """Return the signature as one line for people."""
        if self.ends:
            return self.ends
        return f"{self.raises}: {' | '.join(self.match)}" if self.match else f"{self.raises}"


@dataclass(frozen=True)
class Variant:
    """One way to run a repro."""

    name: str
    outcome: Outcome
    about: str
    """One line: what this variant does."""
    strategies: tuple[str, ...]
    devices: tuple[Device, ...]
    affected: tuple[Requirement, ...]
    """All must hold for the failure to be expected; empty: no release is free of it."""
    requires: tuple[Requirement, ...]
    """All must hold for the variant to be run at all."""
    signature: Signature | None = None
    """What a failure of this repro looks like; for a variant that passes, what it must not show."""
    claim: str | None = None
    """What a documented solution promises that does not work."""
    source: str | None = None
    """Where the solution is documented."""


@dataclass(frozen=True)
class Repro:
    """One documented failure."""

    id: str
    """`RPR-0001`; never changes, never reused."""
    path: Path
    """The script."""
    title: str
    upstream: tuple[str, ...]
    packages: tuple[str, ...]
    """The packages that the failure is in."""
    dependencies: tuple[Requirement, ...]
    """PEP 723 dependencies: what the script imports."""
    affected: tuple[Requirement, ...]
    requires: tuple[Requirement, ...]
    home: str
    """Name of the stack on which the documented failure is exact."""
    strategies: tuple[str, ...]
    cold: tuple[str, ...]
    """The strategies whose launcher is part of what is shown: never launched warm unless that is asked for."""
    devices: tuple[Device, ...]
    processes: int
    """Ranks that the script runs as."""
    minimum: int
    """Fewest devices with which the failure still shows."""
    deadline: float
    """Seconds after which a cell is taken for hung."""
    silent: bool
    """Whether the failure is a wrong result without an error."""
    variants: tuple[Variant, ...]
    doc: str
    """The script's docstring: symptom, cause, fix."""

    @property
    def slug(self) -> str:
        """The script's stem."""
        return self.path.stem

    @property
    def family(self) -> str:
        """The folder that the script lies in."""
        return self.path.parent.name

    def variant(self, name: str) -> Variant | None:
        """Return the variant of that name, or None."""
        return next((v for v in self.variants if v.name == name), None)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The docstring's labelled paragraphs (`Symptom`, `Cause`, `Fix`), each unfolded to one line."""
        found = re.findall(r"^(\w+):\s(.+?)(?=\n\s*\n|\n\w+:\s|\Z)", self.doc, re.MULTILINE | re.DOTALL)
        return {label: " ".join(text.split()) for label, text in found}
