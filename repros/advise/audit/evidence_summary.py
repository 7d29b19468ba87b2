"""The evidence for an assessment: the stacks, devices and versions with which the failure was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.advise.audit.subject import Subject
from repros.engine.evidence import Evidence, Measurement, Unit
from repros.model import Device, Repro
from repros.model.affected import packages_of


@dataclass(frozen=True)
class EvidenceSummary:
    """The measurements in which the variant `failing` showed the failure."""

    same_versions: tuple[str, ...]
    """Stacks with the audited versions of the failure's packages."""
    other_versions: tuple[str, ...]
    """Stacks with other versions of them."""
    devices: tuple[Device, ...]
    documented_only: tuple[Device, ...]
    """Devices in the header without such a measurement."""

    def __str__(self) -> str:
        """Return one line of text."""
        devices = ", ".join(self.devices)
        if self.same_versions:
            measured = f"measured with these versions on {devices} ({_name_stacks(self.same_versions)})"
        elif self.other_versions:
            measured = f"measured with other versions on {devices} ({_name_stacks(self.other_versions)})"
        else:
            return "documented, not measured"
        not_measured = ", ".join(self.documented_only)
        return f"{measured}; documented, not measured on {not_measured}" if not_measured else measured


def _name_stacks(names: tuple[str, ...]) -> str:
    return f"stack{'' if len(names) == 1 else 's'} {', '.join(names)}"


def group_by_repro(evidence: Evidence) -> Mapping[str, Evidence]:
    """Return the evidence of each repro by its id."""
    groups: dict[str, dict[Unit, Measurement]] = {}
    for unit, measurement in evidence.items():
        groups.setdefault(unit.repro, {})[unit] = measurement
    return groups


def summarise_evidence(repro: Repro, subject: Subject, evidence: Evidence) -> EvidenceSummary:
    """Return the summary of a failure's own evidence for a subject."""
    packages: set[str] = {*map(canonicalize_name, repro.packages), *packages_of(repro.affected)}
    same: dict[str, None] = {}
    other: dict[str, None] = {}
    devices: dict[Device, None] = {}
    for unit, measurement in evidence.items():
        failing = measurement.variants.get("failing")
        if failing is None or not failing.verdict.shows_failure:
            continue
        devices[unit.device] = None
        (same if _has_versions(subject, packages, measurement.versions) else other)[unit.stack] = None
    documented_only = tuple(device for device in repro.devices if device not in devices)
    return EvidenceSummary(tuple(same), tuple(other), tuple(devices), documented_only)


def _has_versions(subject: Subject, packages: set[str], versions: Mapping[str, str]) -> bool:
    """Return whether the subject has the measured release of each package; the build (`+cpu`) does not matter."""
    for name in packages:
        constraints = subject.constraints_on(name)
        if name not in versions or len(constraints) != 1 or constraints[0].version is None:
            return False
        if constraints[0].version.public != Version(versions[name]).public:
            return False
    return True
