"""An audit for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from repros.audit.assess import Condition, Finding, Status
from repros.audit.verdict import Audit
from repros.model import Repro, Variant
from repros.model.requirements import format_requirement
from repros.text.wording import count, wrap

_MARGIN = 12
_STYLES = {Status.AFFECTED: "bold red", Status.POSSIBLE: "bold yellow"}


def text(audit: Audit, width: int, *, verbose: bool = False) -> Text:
    """Return the whole report.

    Args:
        audit: what is shown.
        width: columns that the reader has.
        verbose: whether what is clear or cannot be told is listed one by one.
    """
    lines = [line for status in _STYLES for finding in audit.of(status) for line in _finding(finding, width)]
    lines += _untold(audit, width, verbose=verbose)
    if verbose:
        lines += _entries("not affected", audit.of(Status.CLEAR), width)
    lines += _ignores(audit, width)
    return Text("\n").join([*lines, _closing(audit, width)])


def _finding(finding: Finding, width: int) -> Iterator[Text]:
    repro = finding.repro
    silent = " (silent)" if repro.silent else ""
    possible = "" if finding.status is Status.AFFECTED else ": possible, it depends on what is installed in the end"
    for line in wrap(f"{repro.id} {repro.title}{silent}{possible}", width, hanging=" " * 9):
        yield Text(line, _STYLES[finding.status])
    for number, condition in enumerate(finding.conditions):
        yield from _entry("" if number else "because", str(condition), width)
    yield from _entry("fixed in", ", ".join(finding.fixed) or "no release yet", width)
    if finding.free:
        yield from _entry("free of it", ", ".join(finding.free), width)
    for number, variant in enumerate(finding.workarounds):
        yield from _entry("" if number else "workaround", workaround(repro, variant), width)
    yield from _entry("evidence", str(finding.measured), width)
    yield from _entry("more", f"repros show {repro.id}", width)
    yield Text()


def workaround(repro: Repro, variant: Variant) -> str:
    """Return a workaround in a sentence: its name, what it does, what it alone needs, where it is documented."""
    own = [format_requirement(needed) for needed in variant.requires if needed not in repro.requires]
    needs = f" (needs {', '.join(own)})" if own else ""
    source = f" {variant.source}" if variant.source else ""
    return f"{variant.name}: {variant.about}{needs}{source}"


def _untold(audit: Audit, width: int, *, verbose: bool) -> Iterator[Text]:
    """Yield the unknown findings, grouped by what is missing; without them an empty answer would read as a good one."""
    unknown = audit.of(Status.UNKNOWN)
    if not unknown:
        return
    if verbose:
        yield from _entries("cannot tell", unknown, width)
    else:
        by_reason: dict[str, list[str]] = {}
        for finding in unknown:
            reason = "; ".join(dict.fromkeys(map(_missing, finding.conditions)))
            by_reason.setdefault(reason, []).append(finding.repro.id)
        yield Text("Cannot tell", "bold")
        for reason, ids in by_reason.items():
            yield from map(Text, wrap(f"{reason}: {', '.join(ids)}", width, "  ", "    "))
    for problem in audit.subject.unread:
        yield from map(Text, wrap(f"not understood: {problem}", width, "  ", "    "))
    yield from map(Text, wrap("an environment tells all: repros audit --python PATH", width, "  ", "    "))
    yield Text()


def _missing(condition: Condition) -> str:
    """Return what a condition lacks, without its range, so that equal ones stand together."""
    return str(condition) if condition.package else f"{condition.requirement.name} is not named there"


def _entries(heading: str, findings: list[Finding], width: int) -> Iterator[Text]:
    if findings:
        yield Text(heading.capitalize(), "bold")
    for finding in findings:
        why = "; ".join(map(str, finding.conditions))
        yield from map(Text, wrap(f"{finding.repro.id}: {why}", width, "  ", "    "))
    if findings:
        yield Text()


def _ignores(audit: Audit, width: int) -> Iterator[Text]:
    said = [f"{one.id}: until {one.until}, {one.reason}" for _, one in audit.ignored]
    yield from (Text(line, "dim") for one in said for line in wrap(f"ignored {one}", width, hanging="  "))
    for one in audit.expired:
        problem = f"no longer ignored {one.id}: expired on {one.until} ({one.reason}); decide again, or upgrade"
        yield from (Text(line, "yellow") for line in wrap(problem, width, hanging="  "))
    for one in audit.idle:
        yield from (
            Text(line, "dim") for line in wrap(f"ignored in vain {one.id}: it is not there", width, hanging="  ")
        )
    if said or audit.expired or audit.idle:
        yield Text()


def _closing(audit: Audit, width: int) -> Text:
    names = {
        Status.AFFECTED: "affected",
        Status.POSSIBLE: "possible",
        Status.UNKNOWN: "cannot be told",
        Status.CLEAR: "not affected",
    }
    fixed = sum(bool(finding.fixed) for finding in audit.of(Status.AFFECTED))
    names[Status.AFFECTED] += f" ({fixed} fixed in a newer release)" if fixed else ""
    counts = [f"{len(audit.of(status))} {name}" for status, name in names.items()]
    counts += [f"{len(audit.ignored)} ignored"] if audit.ignored else []
    every = len(audit.findings) + len(audit.ignored)
    said = f"{audit.subject.name}: of {count(every, 'documented failure')} {', '.join(counts)}"
    return Text("\n").join(map(Text, wrap(said, width, hanging="  ")))


def _entry(label: str, body: str, width: int) -> Iterator[Text]:
    """Set a label in the margin of a wrapped paragraph."""
    indent = " " * (_MARGIN + 2)
    for number, line in enumerate(wrap(body, width, indent)):
        shown = Text(f"  {'' if number else label:<{_MARGIN}}{line[len(indent) :]}")
        shown.stylize("dim", 0, len(indent))
        yield shown
