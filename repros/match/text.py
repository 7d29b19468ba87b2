"""The report of `repros match` for the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from repros.engine.consequences import is_consequence
from repros.match import AffectedState, Candidate, Confidence, Failure, Link, LogMatch, RuledOut, Sighting
from repros.model import Repro, Role, Variant
from repros.model.requirements import format_requirement
from repros.text.layout import entries, entry, heading
from repros.text.wording import count, own_requirements, wrap

_LONGEST_MESSAGE = 300
_MOST_EXCEPTIONS = 6
_STYLES = {Confidence.CERTAIN: "green", Confidence.LIKELY: "yellow", Confidence.POSSIBLE: "magenta"}
_ROLE_LABELS = {Role.WORKS: "works", Role.DOES_NOT_FIX: "does not"}


def format_match(found: LogMatch, width: int) -> Text:
    """Return the whole report in at most `width` columns; only names and links may be longer."""
    lines: list[Text] = []
    for candidate in found.candidates:
        lines += [*_candidate_lines(candidate, width), Text()]
    if not found.candidates:
        lines += _unknown_lines(found, width)
    lines += entries("ruled out", map(_ruled_out_text, found.ruled_out), width)
    if not found.candidates:
        lines += [*entries("next", ["repros list", "repros new NAME (to document it)"], width), Text()]
    lines += [Text(line, "yellow") for note in found.notes for line in wrap(note, width)]
    while lines and not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def format_rank(label: str) -> str:
    """Return a label with the rank in one spelling: `rank 1` for torch's `rank1` and Lightning's `rank: 1`."""
    return re.sub(r"\brank:? ?(?=\d)", "rank ", label)


def confidence_reason(candidate: Candidate) -> str:
    """Return the reason for a candidate's confidence."""
    best = candidate.sightings[0]
    if best.in_own_script:
        return f"the traceback contains the repro's own script, {candidate.repro.path.name}"
    agreeing = ["class", "message", *([f"the frame {best.frames[0].rpartition(':')[2]}"] if best.frames else [])]
    if candidate.confidence is Confidence.CERTAIN:
        agreeing.append("versions")
    doubts = []
    if not best.frames_agree:
        doubts.append("the log has no frames")
    if candidate.rivals:
        doubts.append(
            f"{', '.join(candidate.rivals)} {'have' if len(candidate.rivals) > 1 else 'has'} this message too"
        )
    if candidate.affected.state is AffectedState.NOT_AFFECTED:
        doubts.append("the versions in the log are not affected")
    reason = f"{_join(agreeing)} agree"
    return f"{reason}, but {_join(doubts)}" if doubts else reason


def _join(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def distinguishing_text(repro: Repro) -> str:
    """Return how to distinguish a repro from others with its message."""
    return repro.sections.get("Apart") or "nothing in the log; run it with --confirm --python PATH"


def next_commands(repro: Repro) -> list[str]:
    """Return the commands to run next."""
    return [
        f"repros show {repro.id}",
        f"repros run {repro.id} --python PATH",
        f"repros report {repro.id} --python PATH",
    ]


def versions_text(candidate: Candidate) -> str:
    """Return whether the versions in the log are affected, and the range that decides it."""
    check = candidate.affected
    ranges = ", ".join(map(format_requirement, check.ranges))
    versions = ", ".join(f"{name} {' and '.join(stated)}" for name, stated in check.versions.items())
    if not ranges:
        return "every release is affected"
    if check.state is AffectedState.AFFECTED:
        return f"affected: {versions} ({ranges})"
    if check.state is AffectedState.NOT_AFFECTED:
        others = f"; affected with the variant {_join(check.affected_variants)}" if check.affected_variants else ""
        return f"not affected: {versions} (affected: {ranges}){others}"
    if check.missing:
        return f"unknown: the log does not state the version of {', '.join(check.missing)} (affected: {ranges})"
    return f"unknown: the log states {versions} (affected: {ranges})"


def _candidate_lines(candidate: Candidate, width: int) -> Iterator[Text]:
    repro, confidence = candidate.repro, candidate.confidence
    yield from heading(repro.id, repro.title, width)
    yield from entry(confidence.value, confidence_reason(candidate), width, style=_STYLES[confidence])
    yield from entry("seen", _sightings_text(candidate.sightings), width)
    yield from entry("versions", versions_text(candidate), width)
    for role, label in _ROLE_LABELS.items():
        variants = [variant for variant in repro.variants if variant.role is role]
        yield from entries(label, [_variant_text(repro, variant) for variant in variants], width)
    if candidate.rivals or confidence is Confidence.POSSIBLE:
        yield from entry("apart", distinguishing_text(repro), width)
    yield from entries("next", next_commands(repro), width)


def _variant_text(repro: Repro, variant: Variant) -> str:
    text = f"{variant.name}: {variant.claim or variant.about}"
    needs = ", ".join(own_requirements(repro, variant))
    return f"{text} (needs {needs})" if needs else text


def _sightings_text(sightings: Sequence[Sighting]) -> str:
    best, *others = sightings
    text = _exception_text(best.link, best.failure)
    return f"{text} (and {count(len(others), 'time')} more)" if others else text


def _exception_text(link: Link, failure: Failure) -> str:
    """Return `line 12, rank 1: RuntimeError: the message on one line`."""
    writers = f", {', '.join(map(format_rank, failure.labels))}" if failure.labels else ""
    message = " ".join(link.raised.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    return f"line {link.line}{writers}: {link.raised.name}{': ' if message else ''}{message}"


def _unknown_lines(found: LogMatch, width: int) -> Iterator[Text]:
    """Yield the exceptions of a log that has no known repro."""
    yield Text("No known repro.", "bold")
    exceptions = [(link, failure) for failure in found.failures for link in failure.links]
    causes = [(link, failure) for link, failure in exceptions if not is_consequence(link.raised)]
    if causes:
        texts = [_exception_text(link, failure) for link, failure in causes[:_MOST_EXCEPTIONS]]
        if len(causes) > _MOST_EXCEPTIONS:
            texts.append(f"and {count(len(causes) - _MOST_EXCEPTIONS, 'exception')} more")
    elif exceptions:
        hint = "This error means that another process failed first; the cause is in that process's log."
        texts = [_exception_text(*exceptions[0]), hint]
    else:
        texts = ["none: neither a traceback nor the last line of one"]
    yield from entries("exception", texts, width)


def _ruled_out_text(out: RuledOut) -> str:
    names = " or ".join(name.rpartition(":")[2] for name in out.entry.signature.frames)
    reason = f"the stack has no {names}" if names else "this error means that another process failed first"
    return f"{out.entry.repro.id} has the message of line {out.link.line}, but {reason}"
