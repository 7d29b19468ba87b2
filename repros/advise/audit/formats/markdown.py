"""An audit report as Markdown, for the summary of a workflow or a comment.

The names of files and packages, and ranges, are texts of the audited files. All are code, so that none is a mention, a
link or a tag.
"""

from __future__ import annotations

from collections.abc import Iterator

from repros.advise.audit.assessment import Assessment
from repros.advise.audit.formats import summary
from repros.advise.audit.formats.remedy import fixed_in
from repros.advise.audit.report import AuditReport
from repros.advise.report.markdown import code, table_code
from repros.text.control import remove_controls


def render_markdown(report: AuditReport) -> str:
    """Return the reported failures, each with its reason and its fix, the upgrades, and the numbers of the others."""
    parts = [
        [f"**{code(report.subject.name)}**: {code(summary.summarise(report))}"],
        [f"* {code(upgrade)}" for upgrade in summary.describe_upgrades(report)],
        [*_table(report)],
        [f"* gone: {code(_name(one))}" for one in (report.base.ended if report.base else ())],
        [f"* ignored until {ignore.until}: {code(ignore.reason)} ({one.repro.id})" for one, ignore in report.ignored],
        [f"* expired ignore: {ignore.id}, ended on {ignore.until}" for ignore in report.expired],
        [f"* not parsed: {code(problem)}" for problem in report.subject.unparsed],
        [f"* {code(sentence)}" for sentence in summary.describe_others(report)],
    ]
    return remove_controls("\n\n".join("\n".join(part) for part in parts if part)) + "\n"


def _table(report: AuditReport) -> Iterator[str]:
    """Yield the lines of a table with a row for each reported failure, bugs first."""
    if not report.reported:
        return
    yield "| Failure | Because | Fixed in |"
    yield "|---|---|---|"
    for one in sorted(report.reported, key=lambda one: summary.SECTIONS.index(summary.section_of(one))):
        because = "; ".join(map(str, one.conditions))
        fix = fixed_in(one)
        yield f"| {table_code(_name(one))} | {table_code(because)} | {table_code(fix) if fix else ''} |"


def _name(one: Assessment) -> str:
    return f"{one.repro.id} {summary.title_of(one)}"
