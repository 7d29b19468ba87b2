"""The answer to the text of an issue: its error, else its symptom, its change of release or its script."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from repros.diagnose.issue import Issue
from repros.diagnose.issue.conditions import Conditions, fit_command
from repros.diagnose.issue.issue import MESSAGE
from repros.diagnose.issue.names import fit_names
from repros.diagnose.issue.pair import PairKind, Quantity
from repros.diagnose.issue.symptoms import ReportedSymptom, check_of, find_symptom, rank_by_words
from repros.diagnose.issue.worked_until import find_worked_until
from repros.engine.source import PROBLEMS
from repros.model import Repro
from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Certainty, Section
from repros.scripts.triage.kind import Document
from repros.scripts.triage.pair_answer import pair_sections
from repros.scripts.triage.report import Report
from repros.scripts.triage.reported_answer import (
    answer_reported,
    computed_section,
    contrast_sections,
    finding_sections,
    hypothesis_sections,
    is_better_supposed,
    missing_sections,
    raised_sections,
)
from repros.scripts.triage.weighed_answer import cause_sections, excluded_section

if TYPE_CHECKING:
    from repros.scripts.triage.change_answer import ReportedChange
    from repros.scripts.triage.script_uses import FailureUses, Resemblance

_MOST_VERSIONS = 8
_MOST_FAILURES = 3
_MOST_USES = 2
_FEWEST_RARE = 3
"""Rare uses that a script shares with a documented failure which its issue does not name."""
_FEWEST_NAMED = 2
"""Words that a report shares with the title of a failure, if the causes of its symptom are known without failures."""
_FIRST = {"seen", "error", "says", "where", "reported"}
"""Sections that come before all others."""
_VERSION = re.compile(r"\d\.(?:\d|x\b)|\bv\d")
_SCRIPT = "train.py"
"""The program of an issue without a script."""


class ListedFailure(NamedTuple):
    """What a list of the catalogue says of one documented failure."""

    id: str
    title: str
    packages: tuple[str, ...]


class Readers(NamedTuple):
    """What reads the catalogue, called only where an answer needs it."""

    uses: Callable[[], Sequence[FailureUses]]
    """Returns the uses of the documented failures."""
    listed: Callable[[], Iterable[ListedFailure]]
    """Returns the documented failures as listed."""
    repros: Callable[[], Iterable[Repro]]
    """Returns the documented failures."""


def complete_issue(answer: Answer, document: Document, report: Report, readers: Readers) -> Answer:
    """Return the answer to an issue: its error, else its symptom, else its change of release, else its script.

    Args:
        answer: that to the errors in its text.
        document: the issue.
        report: what the issue states.
        readers: read the catalogue.
    """
    issue, conditions = report.issue, report.conditions
    is_known = answer.certainty.is_answer and bool(answer.repro_id)
    change = None if is_known else _find_change(report)
    if answer.certainty is Certainty.UNKNOWN and not answer.repro_id:
        answer = _without_known_error(answer, report, change, readers)
    elif not answer.repro_id:
        answer = _with_own_evidence(answer, report)
    sections = list(answer.sections)
    if (
        not is_known
        and answer.certainty is not Certainty.UNKNOWN
        and not any(one.label == "computed" for one in sections)
    ):
        after = sum(section.label in _FIRST for section in sections)
        sections[after:after] = computed_section(report)
    if not is_known and not report.decided and change is None and (until := find_worked_until(issue)):
        after = sum(section.label in _FIRST for section in sections)
        sections.insert(after, Section("begins", (until.text,), most_lines=4))
    if change and not answer.repro_id:  # what changed excludes most other causes
        after = sum(section.label in _FIRST for section in sections)
        sections[after:after] = change.sections(readers.repros)
    elif change:
        sections += change.sections(readers.repros)
    runs = _run_commands(document, issue, change, conditions)
    fitted = filter(None, (fit_command(command, conditions) for command in answer.next))
    return replace(
        answer,
        sections=(*sections, *_stated_section(issue)),
        next=tuple(dict.fromkeys([*runs, *fitted]))[:MOST_COMMANDS],
    )


def _with_own_evidence(answer: Answer, report: Report) -> Answer:
    """Return the answer to a known error with the cause that the report supposes, or else the sides it compares."""
    own = tuple(hypothesis_sections(report))
    if not own and report.pair and report.pair.is_named:
        own = tuple(contrast_sections(report))
    after = sum(section.label in _FIRST for section in answer.sections)
    return replace(answer, sections=(*answer.sections[:after], *own, *answer.sections[after:]))


def _find_change(report: Report) -> ReportedChange | None:
    """Return the change of release that a report states; few reports without a version state one."""
    if not _VERSION.search(report.text):
        return None
    from repros.scripts.triage.change_answer import ReportedChange  # noqa: PLC0415 - its expressions take long

    return ReportedChange.of(report)


def _run_commands(
    document: Document, issue: Issue, change: ReportedChange | None, conditions: Conditions
) -> Iterator[str]:
    """Yield the commands that run the issue's script: between the ends of a change, and on its releases."""
    name = shlex.quote(document.name) if issue.code and document.path else ""
    if change:
        yield from change.bisect_commands(f"--from-issue {name}" if name else conditions.script or _SCRIPT)
    if name:
        yield f"repros triage {name} --run"


def _without_known_error(answer: Answer, report: Report, change: ReportedChange | None, readers: Readers) -> Answer:
    """Return the answer to an issue without a known error: its symptom, its change of release, or its script."""
    issue = report.issue
    error = tuple(section for section in answer.sections if section.label in {"error", "where"})
    symptom = report.symptom
    decided = report.decided
    if error and not ((symptom or decided) and _is_of_title(report)):
        is_placed = any(section.label in {"where", "says"} for section in answer.sections)
        raised = () if is_placed else raised_sections(report)
        supposed = hypothesis_sections(report)
        return replace(answer, sections=(*answer.sections, *raised, *supposed, *contrast_sections(report)))
    close = _close_failures(issue, readers)
    uses = _uses(close)
    title_of = (Section("reported", (issue.title,), most_lines=2),) if issue.title else ()
    if symptom and not (symptom.symptom.is_general and _is_compared(report)):
        shows = [f"repros show {one.uses.repro_id}" for one in close]
        commands = (*shows, *(command.replace("{script}", _SCRIPT) for command in symptom.symptom.next))
        said, *rest = _reported_sections(symptom, report, () if close else readers.listed())
        if is_better_supposed(report, symptom.symptom):
            return answer_reported(answer, report, (*title_of, *error, *uses))
        lacks = () if error or not report.is_crash else missing_sections(report)
        sections = (*error, said, *lacks, *uses, *rest)
        answer = replace(_possible(answer, symptom.symptom.title), sections=sections, next=commands)
        return replace(answer, title=decided.title, certainty=Certainty.LIKELY) if decided else answer
    if change:
        return replace(_possible(answer, change.title), sections=(*title_of, *uses), next=())
    return answer_reported(answer, report, (*title_of, *uses))


def _is_compared(report: Report) -> bool:
    """Return whether the report has two sides whose comparison says more than the causes of a general symptom."""
    kinds = {PairKind.STAGE, PairKind.PART, PairKind.PROGRAM}
    return report.pair is not None and report.pair.kind in kinds and report.pair.quantity is not Quantity.HANG


def _possible(answer: Answer, title: str) -> Answer:
    return replace(answer, title=title, certainty=Certainty.POSSIBLE)


def _is_of_title(report: Report) -> bool:
    """Return whether the title reports a symptom, and no exception."""
    issue = report.issue
    titled = find_symptom(replace(issue, seen=""), report.has_fact, is_crash=report.is_crash)
    return not MESSAGE.search(issue.title) and titled is not None


def _uses(close: Sequence[Resemblance]) -> tuple[Section, ...]:
    if not close:
        return ()
    from repros.scripts.triage.script_answer import uses_section  # noqa: PLC0415 - few scripts resemble a failure

    return tuple(uses_section("", close))


def _close_failures(issue: Issue, readers: Readers) -> list[Resemblance]:
    """Return the documented failures of which the script has several rare calls."""
    if issue.code is None:
        return []
    from repros.scripts.triage.script_uses import find_resemblances, read_uses  # noqa: PLC0415 - few have a script

    with contextlib.suppress(*PROBLEMS):
        found = find_resemblances(read_uses(issue.code.source), readers.uses())
        return [one for one in found if len(one.rare) >= _FEWEST_RARE][:_MOST_USES]
    return []


def _reported_sections(reported: ReportedSymptom, report: Report, listed: Iterable[ListedFailure]) -> Iterator[Section]:
    """Yield the sentence with the symptom, what distinguishes its causes, and the documented failures that show it."""
    symptom, issue = reported.symptom, report.issue
    weighed = report.weigh(symptom)
    yield Section("reported", (reported.sentence,), most_lines=2)
    if decided := report.decided:
        yield from finding_sections(decided)
        return
    pair = tuple(pair_sections(report.pair, report.source)) if report.pair else ()
    yield from (*computed_section(report), *hypothesis_sections(report))
    is_compared = len(pair) > 1 and report.pair is not None and report.pair.is_named
    yield from pair if is_compared else pair[:1]
    check = check_of(symptom, weighed.possible, issue, report.has_fact)
    if not is_compared:
        yield Section("check", (fit_names(check, report.source),), most_lines=5, is_whole=True)
    yield from cause_sections(weighed, report.has_fact, is_shown=check == symptom.check and not is_compared)
    yield from excluded_section(weighed, symptom.name)
    text = f"{issue.title}\n{issue.seen}".lower()
    known = [one for one in listed if one.id in symptom.ids and _concerns(one, text, issue)]
    order = {id_: at for at, id_ in enumerate(symptom.ids)}
    titles = [(one.id, one.title) for one in sorted(known, key=lambda one: order[one.id])]
    shown = rank_by_words(titles, text, fewest=_FEWEST_NAMED if symptom.causes else 1)
    if shown:
        label = "near" if symptom.causes else "possible"
        yield Section(label, tuple(f"{id_} {title}" for id_, title in shown[:_MOST_FAILURES]), most_lines=4)


def _concerns(failure: ListedFailure, text: str, issue: Issue) -> bool:
    """Return whether an issue names a library that has the failure; any issue may concern torch."""
    packages = {*failure.packages} - {"torch"}
    return not packages or any(package in text or package in issue.versions for package in packages)


def _stated_section(issue: Issue) -> Iterator[Section]:
    versions = [f"{name} {stated[0]}" for name, stated in issue.versions.items()][:_MOST_VERSIONS]
    launcher, ranks = issue.launch.launcher, issue.launch.ranks
    launched = " ".join(
        filter(None, [f"by {launcher}" if launcher else "", f"on {ranks} ranks" if (ranks or 0) > 1 else ""])
    )
    gpus = ", ".join(dict.fromkeys(issue.gpus.names))
    if text := "; ".join(filter(None, [", ".join(versions), launched, gpus])):
        yield Section("stated", (text,), most_lines=2)
