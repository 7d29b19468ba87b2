"""The answer to an error that no documented failure has: what its words say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from repros.diagnose.issue.symptoms import find_symptom
from repros.diagnose.match import LogMatch
from repros.diagnose.messages import Explanation, Fault, PossibleCause, explain
from repros.diagnose.messages.explain import Lines, explain_reported, is_warning
from repros.diagnose.messages.family import load_families
from repros.diagnose.messages.nearest import NearFailure
from repros.diagnose.messages.prose import find_reported
from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Certainty, Section
from repros.scripts.triage.failure_answer import where_section
from repros.scripts.triage.kind import Input
from repros.scripts.triage.quoted import message_in
from repros.scripts.triage.report import Report

FindNear = Callable[[str], Iterable[NearFailure]]
"""Returns the documented failures whose messages share the rarest words with a message."""
_LONGEST_MESSAGE = 240
_MOST_CAUSES = 3
_ENDS = (". ", "`", "! ", "? ", "; ")
"""What ends a sentence or a quote."""
_GOES_ON = (":", ",", "(", "[", "{", "-")
"""Ends of a line of a message that goes on."""
_CONTINUES = ("-", ")", "]", "}")
_ANOTHER_LOG = "the log of the rank that failed first: torchrun --tee 3 --log-dir logs, and @record on main"


def answer_message(
    given: Input, match: LogMatch, lines: Lines, find_near: FindNear, report: Report | None = None
) -> Answer | None:
    """Return what the words of the first error mean; None if there is no error.

    Args:
        given: the input.
        match: the failures in it; its candidates are no more than possible.
        lines: the log.
        find_near: finds documented failures with words of a message, for a message of no family.
        report: the issue that the input is; its conditions exclude causes, and its words order the others.
    """
    explanations = explain(match.failures, lines)
    if report and all(one.is_consequence or (not one.family and is_warning(one.link)) for one in explanations):
        explanations = _reported(report, explanations)
    if not explanations:
        return None
    first = next((one for one in explanations if one.family and not one.is_consequence), explanations[0])
    causes = _left_causes(first, report)
    likely = [cause for cause in causes if cause.is_likely]
    certainty = (
        Certainty.LIKELY
        if likely
        else Certainty.POSSIBLE
        if first.family and not first.is_consequence
        else Certainty.UNKNOWN
    )
    near = [(one.repro.id, one.repro.title) for one in match.candidates]
    if not near and first.family is None and not first.is_consequence:
        ruled_out = {out.entry.repro.id for out in match.ruled_out}
        near = [(one.id, one.title) for one in find_near(first.link.raised.message) if one.id not in ruled_out]
    sections = (
        Section("error", (_error_text(first),), most_lines=2),
        *_facts(first),
        *where_section(first.frame),
        *_cause_sections(causes),
        *(_excluded_sections(first, report) if report else ()),
        *_ranks_section(explanations),
        *(
            [Section("near", tuple(f"{id_} {title} (not certain)" for id_, title in near), most_lines=2)]
            if near
            else ()
        ),
        *(_elsewhere_sections(match) if first.is_consequence else ()),
    )
    return Answer(given.kind, _title(first), certainty, sections=sections, next=_commands(first), notes=match.notes)


def _left_causes(explanation: Explanation, report: Report | None) -> Sequence[PossibleCause]:
    """Return the causes of an error that a report leaves; the only one is likely if the report has a fact for it."""
    if report is None:
        return explanation.causes
    left = report.order(explanation.causes, explanation.link.raised.message)
    says = report.fact_for_left_alone(explanation.causes)
    return [replace(cause, evidence=cause.evidence or says) for cause in left] if says else left


def _excluded_sections(explanation: Explanation, report: Report) -> Iterator[Section]:
    """Yield the causes that a report excludes."""
    from repros.scripts.triage.weighed_answer import excluded_section  # noqa: PLC0415 - only an issue needs it

    yield from excluded_section(report.weigh_family(explanation.causes))


def _elsewhere_sections(match: LogMatch) -> Iterator[Section]:
    """Yield what a log says of a failure in another process, and the log that is missing."""
    if match.end:
        yield Section("seen", (f"{match.end.short} ({match.end.meaning})",))
    yield Section("missing", (_ANOTHER_LOG,), most_lines=2)


def _reported(report: Report, explanations: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Return what an issue reports in its own words in front of the explanations of its messages."""
    issue = report.issue
    titled = find_symptom(replace(issue, seen=""), report.has_fact, is_crash=report.is_crash)
    prose = "" if titled else issue.seen
    found = find_reported(issue.title, prose, load_families())
    if found is None:
        return explanations
    family, sentence = found
    if family.fault is Fault.ANOTHER_RANK and any(one.family for one in explanations):
        return explanations  # the pasted error says of another rank as much as the sentence, and more exactly
    before = report.text.partition(sentence)[0]
    return (explain_reported(family, sentence, before.count("\n") + 1), *explanations)


def _title(explanation: Explanation) -> str:
    if explanation.is_consequence:
        return "This error only reports that another process failed first"
    return explanation.family.title if explanation.family else "No documented failure, and no known message"


def _error_text(explanation: Explanation) -> str:
    link, writers = explanation.link, explanation.failure.writers
    message = " ".join(_quoted(explanation).split())
    name = f"{link.raised.name}: " if link.has_class else ""
    rank = f"{writers[0]}, " if writers else ""
    cut = f"{message[:_LONGEST_MESSAGE]} [...]" if len(message) > _LONGEST_MESSAGE else message
    return f"{rank}line {link.line}: {name}{cut}"


def _quoted(explanation: Explanation) -> str:
    """Return the message; of a line of prose, the sentence with the words of the family."""
    message, family = explanation.link.raised.message, explanation.family
    if not explanation.link.has_traceback:
        message = _first_paragraph(message)
    if explanation.link.has_class or explanation.link.has_traceback or family is None:
        return message
    if quoted := message_in(message):
        return quoted
    found = next(filter(None, (re.search(pattern, message) for pattern in family.patterns)), None)
    if found is None:
        return message
    begins = [at + len(end) for end in _ENDS if (at := message.rfind(end, 0, found.start())) >= 0]
    ends = [at for at in (message.find(end, found.end()) for end in _ENDS) if at >= 0]
    return message[max(begins, default=0) : min(ends, default=len(message))]


def _first_paragraph(message: str) -> str:
    """Return a message without the prose on the lines below it: up to a whole line that no indented one follows."""
    first, *others = message.split("\n")
    kept = [first]
    for line in others:
        if not (kept[-1].rstrip().endswith(_GOES_ON) or line[:1].isspace() or line[:1] in _CONTINUES):
            break
        kept.append(line)
    return "\n".join(kept)


def _facts(explanation: Explanation) -> Iterator[Section]:
    if explanation.facts:
        yield Section("says", explanation.facts, most_lines=3)
    fault = explanation.family.fault if explanation.family else Fault.PROGRAM
    if fault is not Fault.PROGRAM:
        named = fault.value if fault is Fault.ANOTHER_RANK else f"the {fault}"
        yield Section("at fault", (f"more often {named} than the program",), most_lines=1)


def _cause_sections(causes: Sequence[PossibleCause]) -> Iterator[Section]:
    """Yield the likely causes with their fixes and checks; without one, the most frequent possible causes."""
    likely = [cause for cause in causes if cause.is_likely]
    for cause in (likely or causes)[: 1 if likely else _MOST_CAUSES]:
        label = "likely" if cause.is_likely else "possible"
        yield Section(label, (f"{cause.cause.text}: {cause.cause.fix}",), most_lines=4, is_whole=True)
        if cause.cause.check:
            yield Section("check", (cause.cause.check,), most_lines=3, is_whole=True)


def _ranks_section(explanations: Sequence[Explanation]) -> Iterator[Section]:
    """Yield which ranks failed, and which only report that."""
    causes = [one for one in explanations if not one.is_consequence]
    named = [one for one in causes if one.is_first]
    failed = [name for one in named or causes for name in one.failure.writers]
    followed = [name for one in explanations if one.is_consequence for name in one.failure.writers]
    followed = [name for name in dict.fromkeys(followed) if name not in failed]
    if failed and followed:
        first = " first, as torchrun reports" if named else ""
        text = f"{', '.join(dict.fromkeys(failed))} failed{first}; what {', '.join(followed)} raised is a consequence"
        yield Section("ranks", (text,), most_lines=2)


def _commands(explanation: Explanation) -> tuple[str, ...]:
    script = explanation.script
    usual = (f"repros watch -- python {script}", f"repros simulate --gpus 1 -- python {script}")
    return tuple(dict.fromkeys((*explanation.next, *usual)))[:MOST_COMMANDS]
