"""The sentences of an audit that text and Markdown have in common: what was found, the upgrades, and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.report import AuditReport, FailOn
from repros.model import FailureKind
from repros.text.wording import count

_KINDS = {FailureKind.LIMITATION: "Limitations", FailureKind.BY_DESIGN: "By design", FailureKind.MISUSE: "Misuse"}
_COUNTED = {
    FailureKind.BUG: ("bug", "bugs"),
    FailureKind.LIMITATION: ("limitation", "limitations"),
    FailureKind.BY_DESIGN: ("by design", "by design"),
    FailureKind.MISUSE: ("misuse", "misuse"),
}
_FIXED, _UNFIXED = "Bugs, fixed in a newer release", "Bugs, fixed in no release yet"
SECTIONS = (_FIXED, _UNFIXED, *_KINDS.values())
"""In the order of the report."""
_MOST_NAMED = 5


def section_of(assessment: Assessment) -> str:
    """Return the heading below which a failure is listed."""
    return _KINDS.get(assessment.repro.kind, _FIXED if assessment.fixed else _UNFIXED)


def title_of(assessment: Assessment) -> str:
    """Return a failure's title, marked if it is silent."""
    return f"{assessment.repro.title}{' (silent)' if assessment.repro.silent else ''}"


def summarise(report: AuditReport) -> str:
    """Return the number of the reported failures, and what they have in common."""
    if report.is_foreign:
        packages = sorted({package for one in report.assessments for package in one.repro.packages})
        return f"lists no package that the catalogue has failures of ({', '.join(packages)})"
    new = "new " if report.base else ""
    found = count(len(report.reported), f"{new}documented failure")
    extent = {
        FailOn.FIXABLE: " that a newer release does not have",
        FailOn.BUGS: " that is a bug or that a newer release does not have",
        FailOn.ALL: "",
    }[report.policy.fail_on]
    if len(report.reported) != 1:
        extent = extent.replace("is a bug", "are bugs").replace("a newer release is", "newer releases are")
    since = f", compared with {report.base.name}" if report.base else ""
    ends = ("" if report.reported else "no ") + (found if report.reported else found.removeprefix("0 "))
    unknown = _unknown_releases(report)
    which = f"; the release of {', '.join(unknown)} is unknown" if unknown else ""
    return f"{ends}{extent}{since}{which}"


def _unknown_releases(report: AuditReport) -> list[str]:
    """Return the packages of which the subject names no release: from a folder or an address, or without metadata."""
    packages = {package for one in report.assessments for package in one.repro.packages}
    named = {package: report.subject.constraints_on(package) for package in packages}
    return sorted(
        package
        for package, constraints in named.items()
        if constraints and all(one.version is None and one.releases is None for one in constraints)
    )


def describe_upgrades(report: AuditReport) -> Iterator[str]:
    """Yield a sentence for each upgrade: `lightning 2.4.0 -> 2.6.1 ends 7 of them`."""
    for number, upgrade in enumerate(report.upgrades):
        releases = " with ".join(map(str, upgrade.releases))
        which = " more" if number else " of them"
        begins = f" (begins: {_names(upgrade.begins)})" if upgrade.begins else ""
        yield f"{releases} ends {len(upgrade.ends)}{which}{begins}"


def _names(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return f"{', '.join(ids[:_MOST_NAMED])}{more}"


def describe_others(report: AuditReport, *, show_all: bool = False) -> Iterator[str]:
    """Yield the numbers of the failures that are not reported, each kind with the option that changes it."""
    if report.base and report.base.kept:
        yield f"unchanged: {count(len(report.base.kept), 'failure')} of {report.base.name}, too"
    if report.unreached:
        yield f"left out: {count(len(report.unreached), 'failure')} of packages that the code cannot use"
    elif report.code and report.code.unknown:
        yield f"nothing is left out: {_names(tuple(sorted(report.code.unknown)))} may use any package"
    if report.is_foreign:
        return
    kinds = Counter(one.repro.kind for one in report.others)
    kept = {one.repro.id for one in (report.base.kept if report.base else ())}
    reported = {one.repro.id for one in report.reported} | kept
    rest = Counter(one.status for one in report.assessments if one.repro.id not in reported)
    parts = [f"{len(report.others)} affected ({_kinds(kinds)})"] if report.others else []
    parts += [
        f"{rest[status]} {name}"
        for status, name in (
            (AuditStatus.POSSIBLE, "possible, depending on the installed release"),
            (AuditStatus.UNKNOWN, "unknown"),
            (AuditStatus.CLEAR, "not affected"),
        )
        if rest[status]
    ]
    if parts:
        yield f"not reported: {', '.join(parts)}{'' if show_all else '; --all lists them'}"


def _kinds(kinds: Counter[FailureKind]) -> str:
    return ", ".join(count(kinds[kind], *names) for kind, names in _COUNTED.items() if kinds[kind])
