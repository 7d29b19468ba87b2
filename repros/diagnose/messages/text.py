"""What a log without a documented failure says, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from repros.diagnose.match.text import exception_text
from repros.diagnose.match.user_frames import UserFrame
from repros.diagnose.messages.explain import DEFAULT_SCRIPT, Explanation, PossibleCause, is_warning
from repros.diagnose.messages.nearest import NearFailure
from repros.text.layout import Paragraphs, entries, entry, label_lines, paragraph_lines
from repros.text.styled import Text
from repros.text.wording import count

_MOST_EXPLAINED = 2
_MOST_CAUSES = 3
_MOST_POSSIBLE = 2
"""Causes in all, if one is likely."""
_MOST_OTHERS = 4
_LONGEST_EVIDENCE = 60
_CONSEQUENCE = "this error means that another process failed first; the cause is in that process's log"
_KEEP_LOGS = "torchrun --redirects 3 --log-dir logs train.py  # a log for each rank, for repros match"
_OWN = "  # your own program"
_DOCUMENT = "repros new NAME  # to document it"


def unmatched_lines(explanations: Sequence[Explanation], near: Sequence[NearFailure], width: int) -> Iterator[Text]:
    """Yield what a log says whose failures are not documented, in at most `width` columns; only names may be longer."""
    yield Text("No documented failure. What the log says:", "bold")
    errors = [explanation for explanation in explanations if not is_warning(explanation.link)] or [*explanations]
    shown = _shown(errors)
    for explanation in shown:
        yield from explanation_lines(explanation, width)
    others = [explanation for explanation in errors if explanation not in shown]
    texts = [_other_text(explanation) for explanation in others[:_MOST_OTHERS]]
    if len(others) > _MOST_OTHERS:
        texts.append(f"and {count(len(others) - _MOST_OTHERS, 'exception')} more")
    yield from entries("also", texts, width)
    yield from entries("near", (near_text(failure) for failure in near), width)
    yield from label_lines("next", next_steps(errors))  # not wrapped: they are pasted


def explanation_lines(explanation: Explanation, width: int) -> Iterator[Text]:
    """Yield one exception, what its words say, the user's own line, and its causes with check and fix."""
    yield from entry("error", exception_text(explanation.link, explanation.failure), width)
    yield from paragraph_lines(describe_meaning(explanation), width)


def describe_meaning(explanation: Explanation) -> Iterator[Paragraphs]:
    """Yield what the words of an exception say, the user's own line, and its causes with check and fix."""
    yield Paragraphs("says", [says(explanation)])
    yield Paragraphs("where", [where(explanation.frame)])
    likely = sum(cause.is_likely for cause in explanation.causes)
    for cause in explanation.causes[: max(likely, _MOST_POSSIBLE) if likely else _MOST_CAUSES]:
        style = "yellow" if cause.is_likely else "dim"
        label = "likely" if cause.is_likely else "possible"
        yield Paragraphs(label, [_cause_text(cause)], style)
        yield Paragraphs("", [f"check: {cause.cause.check}", f"fix: {cause.cause.fix}"])


def says(explanation: Explanation) -> str:
    """Return what the words of an exception say, with what is at fault; empty if they are those of no family."""
    if explanation.family is None:
        return _CONSEQUENCE if explanation.is_consequence else ""
    facts = "; ".join(explanation.facts)
    first = "torchrun reports that this rank failed first; " if explanation.is_first else ""
    fault = explanation.family.fault
    change = fault if fault.startswith("another") else f"the {fault}"
    return f"{first}{explanation.family.title} (to change: {change}){': ' if facts else ''}{facts}"


def where(frame: UserFrame | None) -> str:
    """Return `model.py:54 in forward: return self.pos(...)`; empty without a frame."""
    if frame is None:
        return ""
    code = f": {frame.code}" if frame.code else ""
    return f"{frame.file}:{frame.line} in {frame.function}{code}"


def near_text(failure: NearFailure) -> str:
    """Return a documented failure with similar words, and that it is no match."""
    return f"{failure.id} {failure.title} (no match: it shares the words {', '.join(failure.words[:4])})"


def next_steps(explanations: Sequence[Explanation]) -> list[str]:
    """Return the commands to run next, with the log's own program."""
    if not explanations:
        return [f"repros watch -- python {DEFAULT_SCRIPT}{_OWN}", "repros list"]
    if all(explanation.is_consequence for explanation in explanations):
        return [_KEEP_LOGS]
    first = explanations[0]
    script = first.script
    hint = _OWN if script == DEFAULT_SCRIPT and not first.frame else ""
    commands = [*first.next, f"repros watch -- python {script}", f"repros try {script}"]
    return [*(f"{command}{hint if script in command else ''}" for command in commands), _DOCUMENT]


def _shown(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return those to show in full: the first of each family, and the first one if none has a family."""
    by_family = {explanation.family.name: explanation for explanation in reversed(explanations) if explanation.family}
    shown = [explanation for explanation in explanations if explanation in by_family.values()]
    return (shown or list(explanations[:1]))[:_MOST_EXPLAINED]


def _other_text(explanation: Explanation) -> str:
    text = exception_text(explanation.link, explanation.failure)
    return f"{text} (a consequence of another process's failure)" if explanation.is_consequence else text


def _cause_text(cause: PossibleCause) -> str:
    evidence = cause.evidence.strip()
    if not evidence or evidence.startswith("by the message") or evidence in cause.cause.text:
        return cause.cause.text
    shown = evidence if len(evidence) <= _LONGEST_EVIDENCE else f"{evidence[:_LONGEST_EVIDENCE]}..."
    return f"{cause.cause.text} (seen: {shown})"
