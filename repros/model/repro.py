"""The contents of a script's header: one documented failure and its variants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from repros.model.affected import AnyOf, packages_of
from repros.model.kinds import Device, ExpectedOutcome, FailureKind, Role
from repros.model.packages import canonical_name, format_requirement, intersection
from repros.model.raised import Ending
from repros.model.settings import OWN, Origin

if TYPE_CHECKING:
    from packaging.requirements import Requirement


@dataclass(frozen=True)
class End:
    """The ending of a process in a failure without an exception."""

    ending: Ending
    """`timed out`, `exited` or `signalled`."""
    code: int | None = None
    """Exit code, for `exited`."""
    signal: str | None = None
    """Signal name, for `signalled`."""

    @classmethod
    def parse(cls, text: str) -> End:
        """Parse `hang`, `exit 3` or `signal SIGSEGV`, as in a header.

        Raises:
            ValueError: any other text.
        """
        from signal import Signals  # noqa: PLC0415 - kept endings are not parsed again

        kind, _, which = text.partition(" ")
        if text == "hang":
            return cls(Ending.TIMED_OUT)
        if kind == "exit":
            return cls(Ending.EXITED, code=int(which))
        if kind == "signal" and which in Signals.__members__:
            return cls(Ending.SIGNALLED, signal=which)
        raise ValueError(text)

    def __str__(self) -> str:
        """Return the text that :meth:`parse` accepts."""
        if self.ending is Ending.TIMED_OUT:
            return "hang"
        return f"exit {self.code}" if self.ending is Ending.EXITED else f"signal {self.signal}"


@dataclass(frozen=True)
class Signature:
    """The identifying features of a failure: its exception, or an ending without one."""

    raises: str | None = None
    """Class name of the exception, plain (`RuntimeError`) or dotted; base classes of the raised exception match."""
    match: tuple[str, ...] = ()
    """Alternative texts, one of which the normalised message contains (:func:`repros.engine.signature.normalise`)."""
    ends: End | None = None
    """For a failure without an exception."""
    frames: tuple[str, ...] = ()
    """Functions (`new_forward` or `accelerate/hooks.py:new_forward`), one of them on the call stack of this failure.
    Verdicts ignore them; `repros match` uses them to distinguish failures with the same message."""

    def __str__(self) -> str:
        """Return the signature as one readable line."""
        if self.ends:
            return str(self.ends)
        return f"{self.raises}: {' | '.join(self.match)}" if self.match else f"{self.raises}"


@dataclass(frozen=True)
class Upstream:
    """Upstream issues and pull requests on a failure, by role; https:// addresses."""

    reports: tuple[str, ...] = ()
    """User reports. Empty: discovered by this project, not reported."""
    introduced_by: tuple[str, ...] = ()
    """Changes that introduced it."""
    fixed_by: tuple[str, ...] = ()
    """Changes that fixed it, released."""
    unreleased_fix: tuple[str, ...] = ()
    """Changes that fix it, merged but not released."""
    related: tuple[str, ...] = ()
    """Proposals, partial fixes, the same code or message with another cause."""

    @property
    def links(self) -> tuple[str, ...]:
        """All distinct addresses, reports first."""
        every = (*self.reports, *self.introduced_by, *self.fixed_by, *self.unreleased_fix, *self.related)
        return tuple(dict.fromkeys(every))


@dataclass(frozen=True)
class Variant:
    """One way to run a repro."""

    name: str
    outcome: ExpectedOutcome
    about: str
    """One line: the behaviour of this variant."""
    strategies: tuple[str, ...]
    devices: tuple[Device, ...]
    affected: tuple[AnyOf, ...]
    """Conditions for the failure, all of which must hold; empty: every release is affected."""
    requires: tuple[Requirement, ...]
    """Requirements for running the variant."""
    signature: Signature
    """The failure of this repro; a variant that passes must not show it."""
    claim: str | None = None
    """The promise of a documented solution that does not work."""
    source: str | None = None
    """The address that documents the solution."""
    finds: tuple[str, ...] = ()
    """Checks of `repros watch` that report this variant."""
    contrast: bool = False
    """Whether it passes because its conditions avoid the failure, not because of a fix."""

    @property
    def role(self) -> Role:
        """The purpose of the variant."""
        if self.outcome is ExpectedOutcome.PASSES:
            return Role.CONTRAST if self.contrast else Role.WORKS
        return Role.DOES_NOT_FIX if self.claim else Role.FAILS


@dataclass(frozen=True)
class Repro:
    """One documented failure."""

    id: str
    """`RPR-0001`; never changes, never reused."""
    path: Path
    title: str
    kind: FailureKind
    documented: str | None
    """The address that documents the behaviour; None for a bug."""
    upstream: Upstream
    packages: tuple[str, ...]
    """The packages that contain the failure."""
    dependencies: tuple[Requirement, ...]
    """PEP 723 dependencies: the packages that the script imports."""
    affected: tuple[AnyOf, ...]
    requires: tuple[Requirement, ...]
    home: str
    """The reference stack, on which the documented signature is exact."""
    strategies: tuple[str, ...]
    cold: tuple[str, ...]
    """Strategies whose launcher is part of the failure: launched cold unless warm is requested."""
    devices: tuple[Device, ...]
    processes: int
    """World size of the script."""
    minimum: int
    """Minimum number of devices that shows the failure."""
    deadline: float
    """Timeout in seconds, after which a cell counts as hung."""
    silent: bool
    """Whether the failure is a wrong result without an error."""
    variants: tuple[Variant, ...]
    doc: str
    """The script's docstring: symptom, cause, fix."""
    finds: tuple[str, ...] = ()
    """Checks of `repros watch` that report the failing variants, unless a variant has its own."""
    exists: tuple[AnyOf, ...] = ()
    """Conditions for the existence of the failing feature, as upstream documents it; empty: not documented."""
    exists_source: str | None = None
    """The address that documents `exists`."""
    origin: Origin = OWN
    """The catalogue of the script."""

    @property
    def slug(self) -> str:
        """The script's stem."""
        return self.path.stem

    @property
    def family(self) -> str:
        """The name of the script's folder."""
        return self.path.parent.name

    @cached_property
    def failing(self) -> Variant:
        """The variant `failing`, which exists in every repro."""
        return next(variant for variant in self.variants if variant.name == "failing")

    @cached_property
    def named_packages(self) -> frozenset[str]:
        """Canonical names of the packages that contain the failure, that its ranges name or the script imports."""
        needed = (*self.dependencies, *self.requires, *(r for variant in self.variants for r in variant.requires))
        affected = packages_of(
            (*self.affected, *(condition for variant in self.variants for condition in variant.affected))
        )
        return frozenset(map(canonical_name, (*self.packages, *affected, *(r.name for r in needed))))

    @cached_property
    def measurable(self) -> tuple[str, ...]:
        """The packages that contain the failure, each with the releases that the script runs on: `torch>=2.4`."""
        return tuple(self._measurable(package) for package in self.packages)

    def _measurable(self, package: str) -> str:
        name = canonical_name(package)
        from packaging.requirements import Requirement  # noqa: PLC0415 - few commands compare versions

        needed = intersection(r.specifier for r in self.needs(self.failing) if canonical_name(r.name) == name)
        return format_requirement(Requirement(f"{package}{needed}"))

    def needs(self, variant: Variant) -> tuple[Requirement, ...]:
        """Return the requirements for running a variant; on other releases its behaviour is unknown."""
        return (*variant.requires, *self.requires, *self.dependencies)

    def own_requirements(self, variant: Variant) -> tuple[Requirement, ...]:
        """Return the requirements that a variant adds to those of the repro."""
        return tuple(needed for needed in variant.requires if needed not in self.requires)

    def variant(self, name: str) -> Variant | None:
        """Return the variant of that name, or None."""
        return next((v for v in self.variants if v.name == name), None)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The labelled paragraphs of the docstring (`Symptom`, `Cause`, `Fix`), each joined to one line."""
        sections = re.findall(r"^(\w+):\s(.+?)(?=\n\s*\n|\n\w+:\s|\Z)", self.doc, re.MULTILINE | re.DOTALL)
        return {label: " ".join(text.split()) for label, text in sections}
