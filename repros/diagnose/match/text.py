"""The report of `repros match` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from repros.diagnose.match import Candidate, ChainLink, Confidence, End, LogFailure, LogMatch, Occurrence, RuledOut
from repros.diagnose.match.reasons import (
    confidence_reason,
    next_commands,
    next_without_candidates,
    other_causes,
    ruled_out_reason,
    shown_variants,
    versions_reason,
)
from repros.model import FailureKind, Repro, Role, Variant
from repros.text.layout import entries, entry, heading, label_lines
from repros.text.styled import Text
from repros.text.threads import kind_text
from repros.text.wording import count, own_requirements, wrap

_LONGEST_MESSAGE = 300
_MOST_EXCEPTIONS = 6
_MOST_WRITERS, _FIRST_WRITERS = 16, 4
_STYLES = {Confidence.CERTAIN: "green", Confidence.LIKELY: "yellow", Confidence.POSSIBLE: "magenta"}
_ROLE_LABELS = {Role.WORKS: "works", Role.DOES_NOT_FIX: "does not"}
_POSSIBLE_ROLE_LABELS = {Role.WORKS: "would fix", Role.DOES_NOT_FIX: "would not"}


def format_match(match: LogMatch, width: int, unmatched: Sequence[Text] = (), *, show_ruled_out: bool = False) -> Text:
    """Return the whole report in at most `width` columns; only names and links may be longer.

    Args:
        match: the failures.
        width: columns.
        unmatched: lines to show if there is no candidate, in place of the exceptions alone.
        show_ruled_out: whether to say why each repro was ruled out.
    """
    lines: list[Text] = []
    for candidate in match.candidates:
        lines += [*_candidate_lines(candidate, width), Text()]
    if not match.candidates:
        lines += unmatched or _unknown_lines(match, width)
        lines += _end_lines(match.end, width) if match.end else []
    lines += entries("ruled out", _ruled_out_texts(match.ruled_out, in_full=show_ruled_out), width)
    if not match.candidates and not unmatched:
        lines += [*entries("next", next_without_candidates(match), width), Text()]
    lines += [Text(line, "yellow") for note in match.notes for line in wrap(note, width)]
    while lines and not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def distinguishing_text(repro: Repro) -> str:
    """Return how to distinguish a repro from others with the same message."""
    return repro.sections.get("Apart") or "nothing in the log; run it with --confirm --python PATH"


def _candidate_lines(candidate: Candidate, width: int) -> Iterator[Text]:
    repro, confidence = candidate.repro, candidate.confidence
    yield from heading(repro.id, repro.title, width)
    yield from entry(confidence.value, confidence_reason(candidate), width, style=_STYLES[confidence])
    yield from entry("seen", _occurrences_text(candidate.occurrences), width)
    yield from entry("versions", versions_reason(candidate), width)
    if repro.kind is not FailureKind.BUG:
        yield from entry("kind", kind_text(repro.kind, repro.documented), width)
    labels = _POSSIBLE_ROLE_LABELS if confidence is Confidence.POSSIBLE else _ROLE_LABELS
    for role, label in labels.items():
        yield from entries(label, [_variant_text(repro, variant) for variant in shown_variants(candidate, role)], width)
    yield from entries("or", other_causes(candidate), width)
    if candidate.alternatives or confidence is Confidence.POSSIBLE:
        yield from entry("apart", distinguishing_text(repro), width)
    yield from label_lines("next", next_commands(repro))  # not wrapped: they are pasted


def _variant_text(repro: Repro, variant: Variant) -> str:
    text = f"{variant.name}: {variant.claim or variant.about}"
    needs = ", ".join(own_requirements(repro, variant))
    return f"{text} (needs {needs})" if needs else text


def _occurrences_text(occurrences: Sequence[Occurrence]) -> str:
    best, *others = occurrences
    text = exception_text(best.link, best.failure)
    return f"{text} (and {count(len(others), 'time')} more)" if others else text


def exception_text(link: ChainLink, failure: LogFailure) -> str:
    """Return `line 12, rank 1: RuntimeError: the message on one line`."""
    writers = f", {_writers_text(failure.writers)}" if failure.writers else ""
    message = " ".join(link.raised.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[: _LONGEST_MESSAGE // 2]} [...] {message[-_LONGEST_MESSAGE // 2 :]}"
    parts = [link.raised.name if link.has_class else "", message]
    location = f"line {link.line}{writers}" if link.line else f"{_writers_text(failure.writers)}, by its dump"
    return f"{location}: {': '.join(filter(None, parts))}"


def _writers_text(writers: Sequence[str]) -> str:
    """Return `rank 0, rank 1`; of many writers, the first ones and the total."""
    if len(writers) <= _MOST_WRITERS:
        return ", ".join(writers)
    return f"{', '.join(writers[:_FIRST_WRITERS])}, ... ({len(writers):,} in all)"


def _unknown_lines(match: LogMatch, width: int) -> Iterator[Text]:
    """Yield the exceptions of a log that shows no known repro."""
    from repros.engine.causes import is_consequence  # noqa: PLC0415 - its expressions take long to compile

    yield Text("No documented failure.", "bold")
    # The cause first, as Python prints a chain.
    exceptions = [(link, failure) for failure in match.failures for link in reversed(failure.links)]
    causes = [(link, failure) for link, failure in exceptions if not is_consequence(link.raised)]
    if causes:
        texts = [exception_text(link, failure) for link, failure in causes[:_MOST_EXCEPTIONS]]
        if len(causes) > _MOST_EXCEPTIONS:
            texts.append(f"and {count(len(causes) - _MOST_EXCEPTIONS, 'exception')} more")
    elif exceptions:
        hint = "This error means that another process failed first; the cause is in that process's log."
        texts = [exception_text(*exceptions[0]), hint]
    else:
        texts = ["none: the log has no traceback"]
    yield from entries("exception", texts, width)


def _end_lines(end: End, width: int) -> Iterator[Text]:
    """Yield the line by which a log says how its program ended, and what shows more."""
    yield from entry("ended", end.short, width)
    yield from entry("says", end.meaning, width)
    yield from label_lines("check", [end.check])  # not wrapped: it is pasted


def _ruled_out_texts(ruled_out: Sequence[RuledOut], *, in_full: bool) -> list[str]:
    if in_full or not ruled_out:
        return [_ruled_out_text(out) for out in ruled_out]
    return [f"{', '.join(out.entry.repro.id for out in ruled_out)} (--verbose: why)"]


def _ruled_out_text(out: RuledOut) -> str:
    return f"{out.entry.repro.id} has the message of line {out.link.line}, but {ruled_out_reason(out)}"
