"""The report of an audit: its assessments by the project's policy and ignores, as every format renders it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.ignore import Ignore
from repros.advise.audit.reach import Code, find_unreached
from repros.advise.audit.subject import Subject
from repros.advise.audit.upgrades import Upgrade, find_upgrades
from repros.model import FailureKind


class FailOn(StrEnum):
    """The failures that an audit reports; each value includes those of the one before."""

    FIXABLE = "fixable"
    """Failures that a newer release does not have."""
    BUGS = "bugs"
    """Bugs that no release fixes yet, too."""
    ALL = "all"
    """Misuse, limitations and what is by design, too."""

    def includes(self, assessment: Assessment) -> bool:
        """Return whether a failure is of this extent."""
        if assessment.fixed or self is FailOn.ALL:
            return True
        return self is FailOn.BUGS and assessment.repro.kind is FailureKind.BUG


@dataclass(frozen=True)
class Policy:
    """The failures that a project wants to know."""

    fail_on: FailOn = FailOn.FIXABLE
    strict: bool = False
    """Whether possible and unknown failures are reported."""

    def reports(self, assessment: Assessment) -> bool:
        """Return whether a failure is reported, if the project does not ignore it."""
        statuses = {AuditStatus.AFFECTED, *({AuditStatus.POSSIBLE, AuditStatus.UNKNOWN} if self.strict else ())}
        return assessment.status in statuses and self.fail_on.includes(assessment)


DEFAULT_POLICY = Policy()


@dataclass(frozen=True)
class BaseSubject:
    """The packages before a change, and the difference that the change makes."""

    name: str
    """The file."""
    ended: tuple[Assessment, ...]
    """Failures that would be reported of it, and not of the subject, as they concern the base."""
    kept: tuple[Assessment, ...]
    """Failures that would be reported of both."""


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit of one subject."""

    subject: Subject
    policy: Policy
    assessments: tuple[Assessment, ...]
    """An assessment of each repro in the catalogue's order, without the ignored and the unreached ones."""
    reported: tuple[Assessment, ...]
    """Those that the policy reports, and, with a base, that the base is without."""
    upgrades: tuple[Upgrade, ...]
    """The upgrades by which the reported failures end."""
    ignored: tuple[tuple[Assessment, Ignore], ...]
    """Assessments that an ignore suppresses."""
    expired: tuple[Ignore, ...]
    """Expired ignores; their assessments are not suppressed."""
    unused: tuple[Ignore, ...]
    """Ignores of failures that do not affect the subject."""
    base: BaseSubject | None = None
    unreached: tuple[Assessment, ...] = ()
    """Failures that concern the subject, of packages that the project's code cannot use."""
    code: Code | None = None

    def with_status(self, *statuses: AuditStatus) -> list[Assessment]:
        """Return the assessments with these statuses."""
        return [assessment for assessment in self.assessments if assessment.status in statuses]

    @property
    def is_foreign(self) -> bool:
        """Whether the subject lists no package that a failure is in."""
        every = (*self.assessments, *self.unreached, *(assessment for assessment, _ in self.ignored))
        packages = {package for assessment in every for package in assessment.repro.packages}
        return not any(map(self.subject.find_names, packages))

    @property
    def others(self) -> list[Assessment]:
        """The affected failures that are not reported, and that the base does not have."""
        left_out = {one.repro.id for one in (*self.reported, *(self.base.kept if self.base else ()))}
        return [one for one in self.with_status(AuditStatus.AFFECTED) if one.repro.id not in left_out]


def build_report(
    subject: Subject,
    assessments: Iterable[Assessment],
    ignores: Mapping[str, Ignore],
    today: dt.date,
    policy: Policy = DEFAULT_POLICY,
    *,
    base: tuple[str, Sequence[Assessment]] | None = None,
    code: Code | None = None,
) -> AuditReport:
    """Return the report.

    Args:
        subject: the audited packages.
        assessments: an assessment of each failure.
        ignores: the project's, by repro id; assessments with one that is valid today are separate.
        today: the day.
        policy: the failures to report.
        base: the name of what the packages are compared with, and its assessments.
        code: the project's code; failures of packages that it cannot use are separate.
    """
    known = list(assessments)
    left_out = {*find_unreached((one.repro for one in known), code)} if code else set()
    concerning = {one.repro.id: one for one in known if one.status is not AuditStatus.CLEAR}
    valid = {id_: ignore for id_, ignore in ignores.items() if id_ in concerning and not ignore.is_expired(today)}
    elsewhere = [one for id_, one in concerning.items() if id_ in left_out - valid.keys()]
    shown = [one for one in known if one.repro.id not in valid and one not in elsewhere]
    reported = [assessment for assessment in shown if policy.reports(assessment)]
    compared = _compare(*base, reported, {one.repro.id for one in shown}, policy) if base else None
    kept = {one.repro.id for one in compared.kept} if compared else set()
    reported = [assessment for assessment in reported if assessment.repro.id not in kept]
    return AuditReport(
        subject=subject,
        policy=policy,
        assessments=tuple(shown),
        reported=tuple(reported),
        upgrades=find_upgrades(subject, reported, (assessment.repro for assessment in known)),
        ignored=tuple((concerning[id_], valid[id_]) for id_ in concerning if id_ in valid),
        expired=tuple(ignore for id_, ignore in ignores.items() if ignore.is_expired(today) and id_ in concerning),
        unused=tuple(ignore for id_, ignore in ignores.items() if id_ not in concerning),
        base=compared,
        unreached=tuple(elsewhere),
        code=code,
    )


def _compare(
    name: str, before: Iterable[Assessment], reported: Iterable[Assessment], shown: set[str], policy: Policy
) -> BaseSubject:
    """Return how a base differs; failures that the project ignores or cannot reach are in neither part."""
    now = {assessment.repro.id: assessment for assessment in reported}
    concerned = [one for one in before if policy.reports(one) and one.repro.id in shown]
    ended = tuple(one for one in concerned if one.repro.id not in now)
    return BaseSubject(name, ended, tuple(now[one.repro.id] for one in concerned if one.repro.id in now))
