"""The environment under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from repros.model.affected import Overlap, Term
from repros.model.kinds import Device
from repros.model.packages import canonical_name, distributions_of


@dataclass(frozen=True)
class Environment:
    """A Python environment in which cells run, as probed."""

    name: str
    """The stack's name, or the interpreter's path for the user's own environment."""
    python: Path
    """The interpreter that runs the cells."""
    python_version: str
    versions: Mapping[str, str]
    """Installed distributions: canonical name to installed version (`2.13.0+cpu`)."""
    counts: Mapping[Device, int] = field(default_factory=dict)
    """Number of usable devices of each kind."""
    absent: Mapping[Device, str] = field(default_factory=dict)
    """Why a kind of device is missing: one sentence with a remedy."""
    broken: str | None = None
    """Why no cell can run here: the environment could not be made, or its interpreter fails."""
    stack: str | None = None
    """Name of the stack that the environment was made from; None for the user's own environment."""
    platform: str = ""
    """Operating system, processor and C library of its machine; empty for this machine."""
    notes: tuple[str, ...] = ()
    """What a reader of its results must know about the user's shell and search path, one sentence each."""

    def unmet(self, requirements: Iterable[Requirement]) -> list[str]:
        """Return the unmet requirements, each as `lightning>=2.1 (found 2.0.9)`."""
        return [f"{r} (found {self._installed_version(r) or 'none'})" for r in requirements if not self.holds(r)]

    def holds(self, requirement: Requirement) -> bool:
        """Return whether the installed version satisfies the requirement; an absent package does not.

        A requirement whose marker does not apply to this Python is satisfied.
        """
        if requirement.marker and not requirement.marker.evaluate(self._marker_values()):
            return True
        version = self._installed_version(requirement)
        try:
            return version is not None and requirement.specifier.contains(Version(version), prereleases=True)
        except InvalidVersion:  # a fork with its own version scheme; no range covers it
            return not requirement.specifier

    def compare(self, term: Term) -> Overlap:
        """Return whether the installed release of a term's package is in its range: `ALL` or `NONE`.

        If several distributions of one package are installed, the one with the package's name counts, as in an audit.
        """
        names = distributions_of(term.package)
        name = next((name for name in names if name in self.versions), term.package)
        return Overlap.ALL if self.holds(Requirement(f"{name}{term.requirement.specifier}")) else Overlap.NONE

    def _marker_values(self) -> dict[str, str]:
        full = self.python_version
        return {"python_full_version": full, "python_version": ".".join(full.split(".")[:2])}

    def _installed_version(self, requirement: Requirement) -> str | None:
        name = canonical_name(requirement.name)
        return self.python_version if name == "python" else self.versions.get(name)
