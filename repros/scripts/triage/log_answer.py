"""The answer to logs, dumps, a pasted message or the text of an issue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from repros.diagnose.match import Candidate, Confidence, LogMatch, SignatureIndex, log
from repros.diagnose.match.hang import EvidenceMatch, match_evidence
from repros.diagnose.match.hang.dumps import read_dumps
from repros.diagnose.match.log import LogLines
from repros.diagnose.match.reasons import confidence_reason, shown_variants, versions_reason
from repros.model import Repro, Role
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.failure_answer import cause_section, fix_sections, next_commands
from repros.scripts.triage.kind import Document, Input

_CERTAINTIES = {
    Confidence.CERTAIN: Certainty.CERTAIN,
    Confidence.LIKELY: Certainty.LIKELY,
    Confidence.POSSIBLE: Certainty.POSSIBLE,
}


def answer_log(given: Input, index: SignatureIndex, read_repros: Callable[[], Iterable[Repro]]) -> Answer:
    """Return the answer to logs and dumps: a documented failure, a hang, or what the words of the error say.

    Args:
        given: the logs and the dumps.
        index: the catalogue's signatures.
        read_repros: reads the catalogue, which only a hang needs.

    Raises:
        ReprosError: a log is empty or binary, or a dump cannot be read.
    """
    lines = join_logs(given.documents) if given.documents else None
    evidence = match_evidence(lines, read_dumps(given.dumps), _Lazy(read_repros), index=index)
    if evidence.match.candidates:
        return _answer_candidate(given, evidence.match)
    return _answer_unknown(given, evidence)


class _Lazy:
    """Repros that are read when they are iterated over."""

    def __init__(self, read: Callable[[], Iterable[Repro]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Repro]:
        return iter(self._read())


def join_logs(documents: Sequence[Document]) -> LogLines:
    """Return the lines of all logs, one log after the other, with a note on where each begins.

    Raises:
        ReprosError: one is empty or binary.
    """
    logs = [log.decode_lines(document.raw, document.name) for document in documents]
    if len(logs) == 1:
        return logs[0]
    raw, notes = b"", []
    for document, lines in zip(documents, logs, strict=True):
        first = raw.count(b"\n") + 1
        notes += [f"{document.name} begins at line {first}.", *lines.notes]
        raw += lines.raw.rstrip(b"\n") + b"\n\n"
    return LogLines(raw, tuple(notes))


def _answer_candidate(given: Input, match: LogMatch) -> Answer:
    """Return the answer by the most certain documented failure."""
    candidate, *others = match.candidates
    repro = candidate.repro
    sections = (
        cause_section(repro),
        *fix_sections(repro, shown_variants(candidate, Role.WORKS), candidate.occurrences[0].link.raised.message),
        Section("sure", (confidence_reason(candidate),), most_lines=2),
        Section("versions", (versions_reason(candidate),), most_lines=2),
        *_others_section(others),
    )
    certainty = _CERTAINTIES[candidate.confidence]
    return Answer(given.kind, repro.title, certainty, repro.id, sections, next_commands(repro), match.notes)


def _others_section(others: Sequence[Candidate]) -> Iterator[Section]:
    if others:
        texts = tuple(f"{other.repro.id} {other.repro.title} ({other.confidence})" for other in others)
        yield Section("also", texts, most_lines=2)


def _answer_unknown(given: Input, evidence: EvidenceMatch) -> Answer:
    return Answer(given.kind, "No documented failure.", Certainty.UNKNOWN, notes=evidence.match.notes)
