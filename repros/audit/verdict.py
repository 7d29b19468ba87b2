"""An audit: findings with what has been decided about them, as every format shows them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.audit.assess import Finding, Status
from repros.audit.ignore import Ignore
from repros.audit.subject import Subject


@dataclass(frozen=True)
class Audit:
    """Everything that is shown of one subject."""

    subject: Subject
    findings: tuple[Finding, ...]
    """Of every repro, in the catalogue's order, those that are ignored left out."""
    ignored: tuple[tuple[Finding, Ignore], ...]
    """Findings that would have been shown."""
    expired: tuple[Ignore, ...]
    """Decisions that no longer hold; their findings count."""
    idle: tuple[Ignore, ...]
    """Decisions about what does not concern the subject."""

    def of(self, *statuses: Status) -> list[Finding]:
        """Return the findings of these statuses."""
        return [finding for finding in self.findings if finding.status in statuses]


def decide(subject: Subject, findings: Iterable[Finding], ignores: Mapping[str, Ignore], today: dt.date) -> Audit:
    """Set aside what is to be ignored today."""
    shown, ignored = [], []
    concerned = set()
    for finding in findings:
        decision = ignores.get(finding.repro.id)
        if finding.status is not Status.CLEAR:
            concerned.add(finding.repro.id)
        if decision is None or decision.expired(today) or finding.status is Status.CLEAR:
            shown.append(finding)
        else:
            ignored.append((finding, decision))
    return Audit(
        subject=subject,
        findings=tuple(shown),
        ignored=tuple(ignored),
        expired=tuple(one for one in ignores.values() if one.expired(today) and one.id in concerned),
        idle=tuple(one for id_, one in ignores.items() if id_ not in concerned),
    )
