"""How well a failure is known: where it was measured, and whether on the very versions that are audited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.audit.subject import Subject
from repros.evidence import Evidence
from repros.model import Device, Repro, Verdict

_SHOWN = {Verdict.REPRODUCED, Verdict.REGRESSED}


@dataclass(frozen=True)
class Measured:
    """What evidence there is that the failing variant fails."""

    here: tuple[str, ...]
    """Stacks with the audited versions of the packages that the failure is in, on which it was seen."""
    elsewhere: tuple[str, ...]
    """Other stacks on which it was seen."""
    tiers: tuple[Device, ...]
    """On which devices."""
    documented: tuple[Device, ...]
    """Devices that the header names and on which nothing was seen."""

    def __str__(self) -> str:
        """Return one line for people."""
        tiers = ", ".join(self.tiers)
        if self.here:
            said = f"measured on these versions, on {tiers} (stack {', '.join(self.here)})"
        elif self.elsewhere:
            said = f"measured on {tiers} with other versions (stack {', '.join(self.elsewhere)}); documented for these"
        else:
            return "documented only; nothing was measured"
        return f"{said}; on {', '.join(self.documented)} documented only" if self.documented else said


def measured(repro: Repro, subject: Subject, evidence: Evidence) -> Measured:
    """Look a failure up in the evidence."""
    packages: set[str] = {canonicalize_name(name) for name in (*repro.packages, *(r.name for r in repro.affected))}
    here: dict[str, None] = {}
    elsewhere: dict[str, None] = {}
    tiers: dict[Device, None] = {}
    for unit, one in evidence.items():
        seen = one.variants.get("failing")
        if unit.repro != repro.id or seen is None or seen.verdict not in _SHOWN:
            continue
        tiers[unit.device] = None
        (here if _same(packages, one.versions, subject) else elsewhere)[unit.stack] = None
    documented = tuple(device for device in repro.devices if device not in tiers)
    return Measured(tuple(here), tuple(elsewhere), tuple(tiers), documented)


def _same(packages: set[str], versions: Mapping[str, str], subject: Subject) -> bool:
    """Whether the subject has the measured release of each of the packages, whatever its build."""
    for name in packages:
        known = subject.named(name)
        picks = subject.picks[known] if known else ()
        if name not in versions or len(picks) != 1 or picks[0].version is None:
            return False
        if picks[0].version.public != Version(versions[name]).public:
            return False
    return True
