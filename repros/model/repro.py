"""The contents of a script's header: one documented failure and its variants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from signal import Signals

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model.affected import AnyOf, packages_of
from repros.model.observation import Ending
from repros.model.packages import format_requirement, intersection
from repros.model.settings import OWN, Origin


class Device(StrEnum):
    """The kind of device that a cell runs on; evidence always names it."""

    CUDA = "cuda"
    """A real GPU."""
    SIM = "sim"
    """The simulated accelerator of :mod:`repros.simulated_gpus`."""
    CPU = "cpu"
    """Host tensors; collectives over Gloo."""


class ExpectedOutcome(StrEnum):
    """What a variant does on a stack that has the failure."""

    FAILS = "fails"
    PASSES = "passes"


class FailureKind(StrEnum):
    """What a maintainer of the library would call the failure."""

    BUG = "bug"
    """The library does not do what it documents."""
    BY_DESIGN = "by design"
    """The library does this on purpose and documents it."""
    MISUSE = "misuse"
    """The library documents another use."""
    LIMITATION = "limitation"
    """The library documents that it cannot do this."""


class Role(StrEnum):
    """What a variant shows to a reader."""

    FAILS = "fails"
    WORKS = "works"
    """A fix or a workaround."""
    DOES_NOT_FIX = "does not fix"
    """A solution that is documented somewhere and does not work."""
    CONTRAST = "shows nothing"
    """Conditions under which the failure does not show, such as a single rank; no fix."""


@dataclass(frozen=True)
class End:
    """How a process ends in a failure that raises nothing."""

    ending: Ending
    """`timed out`, `exited` or `signalled`."""
    code: int | None = None
    """Exit code, for `exited`."""
    signal: str | None = None
    """Signal name, for `signalled`."""

    @classmethod
    def parse(cls, text: str) -> End:
        """Return the end that a header states as `hang`, `exit 3` or `signal SIGSEGV`.

        Raises:
            ValueError: the text is none of these.
        """
        kind, _, which = text.partition(" ")
        if text == "hang":
            return cls(Ending.TIMED_OUT)
        if kind == "exit":
            return cls(Ending.EXITED, code=int(which))
        if kind == "signal" and which in Signals.__members__:
            return cls(Ending.SIGNALLED, signal=which)
        raise ValueError(text)

    def __str__(self) -> str:
        """Return it as a header states it."""
        if self.ending is Ending.TIMED_OUT:
            return "hang"
        return f"exit {self.code}" if self.ending is Ending.EXITED else f"signal {self.signal}"


@dataclass(frozen=True)
class Signature:
    """What the documented failure looks like: an exception, or an ending without one."""

    raises: str | None = None
    """Class name of the exception, plain (`RuntimeError`) or dotted; a base class of what was raised counts."""
    match: tuple[str, ...] = ()
    """Alternative texts; the message, normalised (:func:`repros.engine.signature.normalise`), contains one of them."""
    ends: End | None = None
    """For a failure that raises nothing."""
    frames: tuple[str, ...] = ()
    """Functions (`new_forward` or `accelerate/hooks.py:new_forward`) of which one is on the stack whenever this failure
    causes the message. Verdicts ignore them; `repros match` uses them to tell logs with the same message apart."""

    def __str__(self) -> str:
        """Return the signature as one line for people."""
        if self.ends:
            return str(self.ends)
        return f"{self.raises}: {' | '.join(self.match)}" if self.match else f"{self.raises}"


@dataclass(frozen=True)
class Upstream:
    """The threads about a failure, by what they have to do with it; each is an https:// address."""

    reports: tuple[str, ...] = ()
    """Users who met it. Empty: found here, nobody has reported it."""
    introduced_by: tuple[str, ...] = ()
    """The changes that brought it."""
    fixed_by: tuple[str, ...] = ()
    """The changes that fixed it, in a release."""
    unreleased_fix: tuple[str, ...] = ()
    """The changes that fix it and are merged, but in no release yet."""
    related: tuple[str, ...] = ()
    """Others: proposals, partial fixes, the same code or message with another cause."""

    @property
    def links(self) -> tuple[str, ...]:
        """All of them, reports first, each once."""
        every = (*self.reports, *self.introduced_by, *self.fixed_by, *self.unreleased_fix, *self.related)
        return tuple(dict.fromkeys(every))


@dataclass(frozen=True)
class Variant:
    """One way to run a repro."""

    name: str
    outcome: ExpectedOutcome
    about: str
    """One line: what this variant does."""
    strategies: tuple[str, ...]
    devices: tuple[Device, ...]
    affected: tuple[AnyOf, ...]
    """All must hold for the failure to be expected; empty: every release has it."""
    requires: tuple[Requirement, ...]
    """All must hold for the variant to be run."""
    signature: Signature
    """What a failure of this repro looks like; for a variant that passes, what it must not show."""
    claim: str | None = None
    """What a documented solution promises, for one that does not work."""
    source: str | None = None
    """Where the solution is documented."""
    finds: tuple[str, ...] = ()
    """Names of the checks of `repros watch` that find what this variant does."""
    contrast: bool = False
    """Whether it passes because the failure does not show under its conditions, and not because it fixes anything."""

    @property
    def role(self) -> Role:
        """What the variant shows to a reader."""
        if self.outcome is ExpectedOutcome.PASSES:
            return Role.CONTRAST if self.contrast else Role.WORKS
        return Role.DOES_NOT_FIX if self.claim else Role.FAILS


@dataclass(frozen=True)
class Repro:
    """One documented failure."""

    id: str
    """`RPR-0001`; never changes, never reused."""
    path: Path
    """The script."""
    title: str
    kind: FailureKind
    documented: str | None
    """The https:// address that documents the behaviour; for a bug, None."""
    upstream: Upstream
    packages: tuple[str, ...]
    """The packages that the failure is in."""
    dependencies: tuple[Requirement, ...]
    """PEP 723 dependencies: the packages that the script imports."""
    affected: tuple[AnyOf, ...]
    requires: tuple[Requirement, ...]
    home: str
    """Name of the stack on which the documented failure is exact."""
    strategies: tuple[str, ...]
    cold: tuple[str, ...]
    """Strategies whose launcher is part of the failure: launched cold unless the user asks for warm."""
    devices: tuple[Device, ...]
    processes: int
    """Ranks that the script runs as."""
    minimum: int
    """Fewest devices that show the failure."""
    deadline: float
    """Seconds after which a cell counts as hung."""
    silent: bool
    """Whether the failure is a wrong result without an error."""
    variants: tuple[Variant, ...]
    doc: str
    """The script's docstring: symptom, cause, fix."""
    finds: tuple[str, ...] = ()
    """Names of the checks of `repros watch` that find the variants that fail, except those with their own."""
    exists: tuple[AnyOf, ...] = ()
    """The releases that have what fails, as upstream documents it; all must hold. Empty: not documented."""
    exists_source: str | None = None
    """The https:// address that documents it."""
    origin: Origin = OWN
    """The catalogue that the script is of."""

    @property
    def slug(self) -> str:
        """The script's stem."""
        return self.path.stem

    @property
    def family(self) -> str:
        """The folder that the script lies in."""
        return self.path.parent.name

    @cached_property
    def failing(self) -> Variant:
        """The variant `failing`, which every repro has."""
        return next(variant for variant in self.variants if variant.name == "failing")

    @cached_property
    def named_packages(self) -> frozenset[str]:
        """Canonical names of the packages that the failure is in, that its ranges name, or that its script imports."""
        needed = (*self.dependencies, *self.requires, *(r for variant in self.variants for r in variant.requires))
        affected = packages_of(
            (*self.affected, *(condition for variant in self.variants for condition in variant.affected))
        )
        return frozenset(map(canonicalize_name, (*self.packages, *affected, *(r.name for r in needed))))

    @cached_property
    def measurable(self) -> tuple[str, ...]:
        """The packages that the failure is in, each with the releases on which the script runs: `torch>=2.4`."""
        return tuple(self._measurable(package) for package in self.packages)

    def _measurable(self, package: str) -> str:
        name = canonicalize_name(package)
        needed = intersection(r.specifier for r in self.needs(self.failing) if canonicalize_name(r.name) == name)
        return format_requirement(Requirement(f"{package}{needed}"))

    def needs(self, variant: Variant) -> tuple[Requirement, ...]:
        """Return what the script needs to run a variant; elsewhere nothing is known of the failure."""
        return (*variant.requires, *self.requires, *self.dependencies)

    def own_requirements(self, variant: Variant) -> tuple[Requirement, ...]:
        """Return the requirements of a variant that its repro does not have."""
        return tuple(needed for needed in variant.requires if needed not in self.requires)

    def variant(self, name: str) -> Variant | None:
        """Return the variant of that name, or None."""
        return next((v for v in self.variants if v.name == name), None)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The docstring's labelled paragraphs (`Symptom`, `Cause`, `Fix`), each unfolded to one line."""
        found = re.findall(r"^(\w+):\s(.+?)(?=\n\s*\n|\n\w+:\s|\Z)", self.doc, re.MULTILINE | re.DOTALL)
        return {label: " ".join(text.split()) for label, text in found}
