"""The environment under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.model.affected import Overlap, Term
from repros.model.packages import distributions_of
from repros.model.repro import Device


@dataclass(frozen=True)
class Environment:
    """A Python environment in which cells run, and what was found in it."""

    name: str
    """The stack's name, or the interpreter's path for the user's own environment."""
    python: Path
    """The interpreter that runs the cells."""
    python_version: str
    versions: Mapping[str, str]
    """Installed distributions: canonical name to version, as really installed (`2.13.0+cpu`)."""
    counts: Mapping[Device, int] = field(default_factory=dict)
    """How many devices of each kind the environment offers."""
    absent: Mapping[Device, str] = field(default_factory=dict)
    """Why a kind of device is missing here: one sentence that names the way out."""
    broken: str | None = None
    """Why no cell can run here at all: the environment could not be made, or its interpreter does not answer."""
    stack: str | None = None
    """Name of the stack that the environment was made from; None for the user's own environment."""
    platform: str = ""
    """The operating system, processor and C library of the machine that it is on; empty: those of this one."""

    def unmet(self, requirements: Iterable[Requirement]) -> list[str]:
        """Return the requirements that do not hold here, each as `lightning>=2.1 (found 2.0.9)`."""
        return [f"{r} (found {self._found(r) or 'none'})" for r in requirements if not self.holds(r)]

    def holds(self, requirement: Requirement) -> bool:
        """Return whether the installed version satisfies the requirement; an absent package satisfies none.

        A requirement whose marker does not apply to this Python holds.
        """
        if requirement.marker and not requirement.marker.evaluate(self._marker_values()):
            return True
        found = self._found(requirement)
        try:
            return found is not None and requirement.specifier.contains(Version(found), prereleases=True)
        except InvalidVersion:  # a fork with version numbers of its own, which no range covers
            return not requirement.specifier

    def compare(self, term: Term) -> Overlap:
        """Return whether the installed release of a term's package lies in its range.

        Of several distributions of one package, that of the package's own name counts, as in an audit.
        """
        names = distributions_of(term.package)
        name = next((name for name in names if name in self.versions), term.package)
        return Overlap.ALL if self.holds(Requirement(f"{name}{term.requirement.specifier}")) else Overlap.NONE

    def _marker_values(self) -> dict[str, str]:
        full = self.python_version
        return {"python_full_version": full, "python_version": ".".join(full.split(".")[:2])}

    def _found(self, requirement: Requirement) -> str | None:
        name = canonicalize_name(requirement.name)
        return self.python_version if name == "python" else self.versions.get(name)
