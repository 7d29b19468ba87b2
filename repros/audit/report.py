"""The report of an audit: its findings after the project's ignores, as every format renders it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.audit.finding import Finding, Status
from repros.audit.ignore import Ignore
from repros.audit.subject import Subject


@dataclass(frozen=True)
class AuditReport:
    """Everything to show about one subject."""

    subject: Subject
    findings: tuple[Finding, ...]
    """A finding for each repro in the catalogue's order, without the ignored ones."""
    ignored: tuple[tuple[Finding, Ignore], ...]
    """Findings that an ignore suppresses."""
    expired: tuple[Ignore, ...]
    """Ignores past their last day; their findings count."""
    unused: tuple[Ignore, ...]
    """Ignores of failures that do not concern the subject."""

    def with_status(self, *statuses: Status) -> list[Finding]:
        """Return the findings of these statuses."""
        return [finding for finding in self.findings if finding.status in statuses]


def build_report(
    subject: Subject, findings: Iterable[Finding], ignores: Mapping[str, Ignore], today: dt.date
) -> AuditReport:
    """Return the report, with the findings apart that are ignored today."""
    shown, ignored = [], []
    concerned = set()
    for finding in findings:
        ignore = ignores.get(finding.repro.id)
        if finding.status is not Status.CLEAR:
            concerned.add(finding.repro.id)
        if ignore is None or ignore.is_expired(today) or finding.status is Status.CLEAR:
            shown.append(finding)
        else:
            ignored.append((finding, ignore))
    return AuditReport(
        subject=subject,
        findings=tuple(shown),
        ignored=tuple(ignored),
        expired=tuple(one for one in ignores.values() if one.is_expired(today) and one.id in concerned),
        unused=tuple(one for id_, one in ignores.items() if id_ not in concerned),
    )
