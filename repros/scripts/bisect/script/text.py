"""A bisection of a script as text: the releases that were asked, and the outcome in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.script.bisection import ScriptBisection
from repros.scripts.bisect.script.question import ScriptQuestion
from repros.text.styled import Text
from repros.text.wording import count, wrap

_LONGEST = 240
"""Characters of what a release shows, in a sentence."""
_MOST_NAMED = 12
"""Releases that a sentence names."""


def describe_script_steps(question: ScriptQuestion) -> list[str]:
    """Return the releases to choose from, the steps, and the cost at most."""
    first, last = question.releases[0], question.releases[-1]
    between = len(question.releases) - 2
    most = count(2 + between.bit_length(), "release")
    runs = f"{question.runs} to {2 * question.runs - 1} runs" if question.runs > 1 else "one run"
    candidates = f"{count(len(question.releases), 'release')} of {question.package}"
    return [
        f"{candidates} on stack {question.stack.name}, from {first.version} to {last.version}",
        f"1. {first.version} and {last.version}: what each shows, or the next to them that can be asked",
        "2. where it changes between them",
        f"at most {most}, plus those that give no answer and those that further jobs try meanwhile; {runs} of each",
    ]


def format_script_bisection(found: ScriptBisection, width: int) -> Text:
    """Return the releases that were asked with what each shows, and the outcome, in at most `width` columns."""
    lines = [*_rows(found, width), Text()]
    lines += [Text(line) for sentence in describe_script_outcome(found) for line in wrap(sentence, width)]
    return Text("\n").join(lines)


def _rows(found: ScriptBisection, width: int) -> Iterator[Text]:
    """Yield a row for each release that was asked, oldest first."""
    releases = found.question.releases
    longest = max(len(str(releases[number].version)) for number in found.answers)
    for number, answer in sorted(found.answers.items()):
        head = f"{releases[number].version!s:<{longest}}  {releases[number].date}  "
        style = "dim" if not answer.shown else "yellow" if _is_third(found, answer) else ""
        shows = answer.why if answer.shown else f"no answer: {answer.why}"
        yield from (Text(line, style) for line in wrap(head + shows, width, hanging=" " * len(head)))


def describe_script_outcome(found: ScriptBisection) -> list[str]:
    """Return the outcome in sentences: the answer first, then what stands in its way."""
    question, change = found.question, found.change
    old, new = _version(found, found.old), _version(found, found.new)
    if change is None:
        same = f"{question.package} {old} and {new} show the same: {_clip(found.shown(found.new))}."
        others = sorted({answer.shown for answer in found.answers.values() if _is_third(found, answer)})
        between = f" Between them is another: {'; '.join(map(_clip, others))}." if others else ""
        return [f"{same}{between} --from and --to compare other releases."]
    assert change.free is not None, "the older of the two releases is free of what the newer one shows"
    first, last = _clip(found.shown(found.old)), _clip(found.shown(found.new))
    until = f"{question.package} {_version(found, change.free)}"
    answer = f"{first} with {until}, {last} from {_version(found, change.affected)} on."
    return [answer, *_gap(found), *_thirds(found)]


def _gap(found: ScriptBisection) -> Iterator[str]:
    """Yield a sentence for each reason why releases between the two sides give no answer."""
    reasons: dict[str, list[int]] = {}
    for number in found.change.unknown if found.change else ():
        if not found.answers[number].shown:
            reasons.setdefault(found.answers[number].why, []).append(number)
    for why, numbers in reasons.items():
        yield f"No answer between them: {_versions(found, numbers)} ({_clip(why)})."


def _thirds(found: ScriptBisection) -> Iterator[str]:
    """Yield a sentence for each thing that neither of the two releases shows, with the way to ask about it."""
    others: dict[str, list[int]] = {}
    for number, answer in sorted(found.answers.items()):
        if _is_third(found, answer):
            others.setdefault(answer.shown, []).append(number)
    for shown, numbers in others.items():
        way = f"--from {_version(found, numbers[0])} or --to {_version(found, numbers[-1])} asks about it"
        yield f"Neither of the two with {_versions(found, numbers)}: {_clip(shown)}; {way}."


def _is_third(found: ScriptBisection, answer: ReleaseAnswer) -> bool:
    return bool(answer.shown) and answer.shown not in {found.shown(found.old), found.shown(found.new)}


def _version(found: ScriptBisection, number: int) -> str:
    return str(found.question.releases[number].version)


def _versions(found: ScriptBisection, numbers: list[int]) -> str:
    named = [_version(found, number) for number in numbers[:_MOST_NAMED]]
    return ", ".join([*named, *([f"{len(numbers) - _MOST_NAMED} more"] if len(numbers) > _MOST_NAMED else [])])


def _clip(text: str) -> str:
    """Return what a release shows as a part of a sentence."""
    text = text.removesuffix(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [...]"
