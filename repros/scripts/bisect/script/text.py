"""A bisection of a script as text: the examined releases, and the outcome in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.script.bisection import ScriptBisection
from repros.scripts.bisect.script.question import ScriptQuestion
from repros.scripts.bisect.search import Boundary
from repros.text.styled import Text
from repros.text.wording import count, wrap

_LONGEST = 240
"""Characters of what a release shows, in a sentence."""
_COMMITS = {
    "torch": "https://github.com/pytorch/pytorch/compare/v{old}...v{new}",
    "torchmetrics": "https://github.com/Lightning-AI/torchmetrics/compare/v{old}...v{new}",
    "lightning": "https://github.com/Lightning-AI/pytorch-lightning/compare/{old}...{new}",
    "pytorch-lightning": "https://github.com/Lightning-AI/pytorch-lightning/compare/{old}...{new}",
    "accelerate": "https://github.com/huggingface/accelerate/compare/v{old}...v{new}",
    "transformers": "https://github.com/huggingface/transformers/compare/v{old}...v{new}",
    "peft": "https://github.com/huggingface/peft/compare/v{old}...v{new}",
    "trl": "https://github.com/huggingface/trl/compare/v{old}...v{new}",
    "datasets": "https://github.com/huggingface/datasets/compare/{old}...{new}",
}
"""The addresses of the commits between two releases, by package."""
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
        f"1. {first.version} and {last.version}, or the nearest releases that give an answer: what each shows",
        "2. where it changes between them",
        f"at most {most}, plus those without an answer and those of further jobs; {runs} of each",
    ]


def format_script_bisection(bisection: ScriptBisection, width: int) -> Text:
    """Return the examined releases with what each shows, and the outcome, in at most `width` columns."""
    lines = [*_rows(bisection, width), Text()]
    lines += [Text(line) for sentence in describe_script_outcome(bisection) for line in wrap(sentence, width)]
    return Text("\n").join(lines)


def _rows(bisection: ScriptBisection, width: int) -> Iterator[Text]:
    """Yield a row for each examined release, oldest first."""
    releases = bisection.question.releases
    longest = max(len(str(releases[number].version)) for number in bisection.answers)
    for number, answer in sorted(bisection.answers.items()):
        head = f"{releases[number].version!s:<{longest}}  {releases[number].date}  "
        style = "dim" if not answer.shown else "yellow" if _is_third(bisection, answer) else ""
        shows = answer.why if answer.shown else f"no answer: {answer.why}"
        yield from (Text(line, style) for line in wrap(head + shows, width, hanging=" " * len(head)))


def describe_script_outcome(bisection: ScriptBisection) -> list[str]:
    """Return the outcome in sentences: the answer first, then its limitations."""
    question, change = bisection.question, bisection.change
    old, new = _version(bisection, bisection.old), _version(bisection, bisection.new)
    if change is None:
        same = f"{question.package} {old} and {new} show the same: {_clip(bisection.shown(bisection.new))}."
        others = sorted({answer.shown for answer in bisection.answers.values() if _is_third(bisection, answer)})
        between = f" Between them is another: {'; '.join(map(_clip, others))}." if others else ""
        unseen = question.releases[bisection.old + 1 : bisection.new]
        asked = bisection.answers.keys() & set(range(bisection.old + 1, bisection.new))
        rest = len(unseen) - len(asked)
        hint = f" {count(rest, 'release')} between them may show another: --every examines each." if rest else ""
        return [f"{same}{between}{hint} --from and --to compare other releases."]
    assert change.free is not None, "the older of the two releases is free of what the newer one shows"
    first, last = _clip(bisection.shown(bisection.old)), _clip(bisection.shown(bisection.new))
    until = f"{question.package} {_version(bisection, change.free)}"
    answer = f"{first} with {until}, {last} from {_version(bisection, change.affected)} on."
    return [answer, *_gap(bisection), *_thirds(bisection), *_changes(bisection, change)]


def _changes(bisection: ScriptBisection, change: Boundary) -> Iterator[str]:
    """Yield the address of the commits between the two releases, of the packages whose tags are known."""
    if (address := _COMMITS.get(bisection.question.package)) and change.free is not None:
        old, new = (_version(bisection, number) for number in (change.free, change.affected))
        yield f"Commits: {address.format(old=old, new=new)}"


def _gap(bisection: ScriptBisection) -> Iterator[str]:
    """Yield a sentence for each reason why releases between the two sides give no answer."""
    reasons: dict[str, list[int]] = {}
    for number in bisection.change.unknown if bisection.change else ():
        if not bisection.answers[number].shown:
            reasons.setdefault(bisection.answers[number].why, []).append(number)
    for why, numbers in reasons.items():
        yield f"No answer between them: {_versions(bisection, numbers)} ({_clip(why)})."


def _thirds(bisection: ScriptBisection) -> Iterator[str]:
    """Yield a sentence for each behaviour that neither of the two releases shows, with the options to bisect it."""
    others: dict[str, list[int]] = {}
    for number, answer in sorted(bisection.answers.items()):
        if _is_third(bisection, answer):
            others.setdefault(answer.shown, []).append(number)
    for shown, numbers in others.items():
        options = f"--from {_version(bisection, numbers[0])} or --to {_version(bisection, numbers[-1])} bisects it"
        yield f"Neither of the two with {_versions(bisection, numbers)}: {_clip(shown)}; {options}."


def _is_third(bisection: ScriptBisection, answer: ReleaseAnswer) -> bool:
    return bool(answer.shown) and answer.shown not in {bisection.shown(bisection.old), bisection.shown(bisection.new)}


def _version(bisection: ScriptBisection, number: int) -> str:
    return str(bisection.question.releases[number].version)


def _versions(bisection: ScriptBisection, numbers: list[int]) -> str:
    named = [_version(bisection, number) for number in numbers[:_MOST_NAMED]]
    return ", ".join([*named, *([f"{len(numbers) - _MOST_NAMED} more"] if len(numbers) > _MOST_NAMED else [])])


def _clip(text: str) -> str:
    """Return what a release shows as a part of a sentence."""
    text = text.removesuffix(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [...]"
