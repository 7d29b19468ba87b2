"""The report of an audit: its assessments after the project's ignores, as every format renders it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.ignore import Ignore
from repros.advise.audit.subject import Subject


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit of one subject."""

    subject: Subject
    assessments: tuple[Assessment, ...]
    """An assessment of each repro in the catalogue's order, without the ignored ones."""
    ignored: tuple[tuple[Assessment, Ignore], ...]
    """Assessments that an ignore suppresses."""
    expired: tuple[Ignore, ...]
    """Expired ignores; their assessments are not suppressed."""
    unused: tuple[Ignore, ...]
    """Ignores of failures that do not affect the subject."""

    def with_status(self, *statuses: AuditStatus) -> list[Assessment]:
        """Return the assessments with these statuses."""
        return [assessment for assessment in self.assessments if assessment.status in statuses]


def build_report(
    subject: Subject, assessments: Iterable[Assessment], ignores: Mapping[str, Ignore], today: dt.date
) -> AuditReport:
    """Return the report; assessments with an ignore that is valid today are separate."""
    shown, ignored = [], []
    concerned = set()
    for assessment in assessments:
        ignore = ignores.get(assessment.repro.id)
        if assessment.status is not AuditStatus.CLEAR:
            concerned.add(assessment.repro.id)
        if ignore is None or ignore.is_expired(today) or assessment.status is AuditStatus.CLEAR:
            shown.append(assessment)
        else:
            ignored.append((assessment, ignore))
    return AuditReport(
        subject=subject,
        assessments=tuple(shown),
        ignored=tuple(ignored),
        expired=tuple(ignore for ignore in ignores.values() if ignore.is_expired(today) and ignore.id in concerned),
        unused=tuple(ignore for id_, ignore in ignores.items() if id_ not in concerned),
    )
