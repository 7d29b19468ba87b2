"""The answer to logs, dumps, a pasted message or the text of an issue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from repros.diagnose.match import (
    AffectedState,
    Candidate,
    ChainLink,
    Confidence,
    LogFailure,
    LogMatch,
    SignatureIndex,
    log,
)
from repros.diagnose.match.hang import match_evidence
from repros.diagnose.match.reasons import WATCH, confidence_reason, shown_variants, versions_reason
from repros.diagnose.match.user_frames import own_frames
from repros.model import Repro, Role
from repros.model.affected import affected_text
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.failure_answer import (
    cause_section,
    fix_sections,
    measured_section,
    next_commands,
    where_section,
    words_of,
)
from repros.scripts.triage.kind import Input

if TYPE_CHECKING:
    from repros.diagnose.match.hang.calls import Dump
    from repros.scripts.triage.message_answer import FindNear
    from repros.scripts.triage.report import Report

_LONGEST_MESSAGE = 110
"""Characters of a message that fit on two lines; of a longer one, the part with its documented words is shown."""
_LONGEST_FOCUS = 40


def answer_log(
    given: Input,
    index: SignatureIndex,
    read_repros: Callable[[], Iterable[Repro]],
    find_near: FindNear,
    report: Report | None = None,
) -> Answer:
    """Return the answer to logs and dumps: a documented failure, a hang, or what the words of the error say.

    Args:
        given: the logs and the dumps.
        index: the catalogue's signatures.
        read_repros: reads the catalogue, which only a hang needs.
        find_near: finds documented failures with words of a message.
        report: the issue that the log is, whose conditions exclude causes.

    Raises:
        ReprosError: a log is empty or binary, or a dump cannot be read.
    """
    lines = log.join_logs([(one.name, one.raw) for one in given.documents]) if given.documents else None
    evidence = match_evidence(lines, _read_dumps(given), _read_lazily(read_repros), index=index)
    match = evidence.match
    if match.candidates and match.candidates[0].confidence is not Confidence.POSSIBLE:
        return answer_candidate(given, match)
    if hangs := [hang for hang in evidence.hangs if hang.has_waiting_ranks or not match.failures]:
        from repros.scripts.triage.hang_answer import answer_hang  # noqa: PLC0415 - few logs have a hang

        return answer_hang(given, hangs[0], match)
    from repros.scripts.triage.message_answer import answer_message  # noqa: PLC0415 - a documented failure needs none

    explained = answer_message(given, match, lines or (), find_near, report)
    is_better = explained is not None and explained.certainty.is_answer
    if match.candidates and not is_better and not (report and _is_raised(match, report)):
        return answer_candidate(given, match)
    return explained or _answer_unknown(given, match)


def _is_raised(match: LogMatch, report: Report) -> bool:
    """Return whether the report has as an exception what the first documented failure only prints."""
    candidate = match.candidates[0]
    text = candidate.occurrences[0].match.matched_text[:_LONGEST_FOCUS]
    return candidate.repro.silent and report.raises(text)


def _read_dumps(given: Input) -> tuple[Dump, ...]:
    if not given.dumps:
        return ()
    from repros.diagnose.match.hang.dumps import read_dumps  # noqa: PLC0415 - few failures have dumps

    return read_dumps(given.dumps)


def _read_lazily(read: Callable[[], Iterable[Repro]]) -> Iterator[Repro]:
    """Yield repros that are read when the first is asked for."""
    yield from read()


def answer_candidate(given: Input, match: LogMatch) -> Answer:
    """Return the answer by the most certain documented failure."""
    candidate, *others = match.candidates
    repro, best = candidate.repro, candidate.occurrences[0]
    message = "\n".join(link.raised.message for link in best.failure.links)
    fixes = tuple(fix_sections(repro, shown_variants(candidate, Role.WORKS), best.hints, message))
    sections = (
        Section("seen", (_seen_text(best.link, best.failure, _focus(candidate)),), most_lines=2),
        cause_section(repro),
        *fixes,
        *where_section(next(iter(own_frames(best.failure, best.link)), None)),
        Section("sure", (confidence_reason(candidate),), most_lines=2),
        *_releases_sections(candidate),
        *_others_section(candidate, others),
    )
    certainty = Certainty(candidate.confidence.value)
    return Answer(given.kind, repro.title, certainty, repro.id, sections, next_commands(repro), match.notes)


def _focus(candidate: Candidate) -> str:
    """Return the part of the message that matters: the words for a fix, else the documented words."""
    best = candidate.occurrences[0]
    words = words_of(best.hints, best.link.raised.message)
    return next(iter(words.values()), best.match.matched_text.partition("{")[0])


def _seen_text(link: ChainLink, failure: LogFailure, focus: str) -> str:
    """Return the line, the ranks and the message; of a long one, the part around some words."""
    writers = failure.writers
    ranks = f", {writers[0]}{f' and {len(writers) - 1} more' if writers[1:] else ''}" if writers else ""
    message = " ".join(link.raised.message.split())
    at = max(message.find(focus[:_LONGEST_FOCUS]), 0)
    start = 0 if at + _LONGEST_FOCUS < _LONGEST_MESSAGE else at
    name = f"{link.raised.name.rpartition('.')[2]}: " if link.has_class else ""
    location = f"line {link.line}{ranks}: " if link.line else ""
    return f"{location}{name}{'[...] ' if start else ''}{message[start:]}"


def _releases_sections(candidate: Candidate) -> Iterator[Section]:
    """Yield what was measured on which releases, whether those of the log are affected, and which are missing."""
    check, repro = candidate.affected, candidate.repro
    if check.state is AffectedState.UNKNOWN and check.missing:
        yield Section("affects", (affected_text(check.ranges, () if check.ranges else repro.measurable),), most_lines=1)
    else:
        stated = versions_reason(candidate).removeprefix("affected: ").removesuffix(" is affected")
        yield Section("affects", (stated,), most_lines=2)
    yield from measured_section(repro)
    if check.state is AffectedState.UNKNOWN and check.missing:
        yield Section(
            "missing", (f"the version of {', '.join(check.missing)}: add `pip list` to the log",), most_lines=1
        )


def _others_section(candidate: Candidate, others: Sequence[Candidate]) -> Iterator[Section]:
    """Yield the other documented failures that it may be, and how to distinguish them."""
    if candidate.alternatives and (difference := candidate.repro.sections.get("Apart")):
        yield Section("apart", (difference,), most_lines=2)
    if others:
        texts = tuple(f"{other.repro.id} {other.repro.title} ({other.confidence})" for other in others)
        yield Section("also", texts, most_lines=2)


def _answer_unknown(given: Input, match: LogMatch) -> Answer:
    """Return the answer to a text without an exception: how it says that the program ended, or what is missing."""
    if end := match.end:
        sections = (
            Section("error" if end.is_kill else "seen", (end.short,), most_lines=2),
            Section("check", (end.check,), is_whole=True),
        )
        certainty = Certainty.POSSIBLE if end.is_kill else Certainty.UNKNOWN
        title = f"{end.meaning[0].upper()}{end.meaning[1:]}"
        return Answer(given.kind, title, certainty, sections=sections, next=(WATCH,), notes=match.notes)
    missing = "the text of the error, from the line `Traceback (most recent call last)` to the exception's message"
    return Answer(
        given.kind,
        "No error is in it",
        Certainty.UNKNOWN,
        sections=(Section("missing", (missing,)),),
        next=(WATCH,),
        notes=match.notes,
    )
