"""A bisection as text: the steps before it, and the outcome as a paragraph to paste into an issue."""

from __future__ import annotations

from collections.abc import Mapping

from repros.engine.environments.releases import PackageRelease
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.bisection import Bisection
from repros.scripts.bisect.examine import MAX_RUNS, NEEDED_RUNS
from repros.scripts.bisect.question import Question
from repros.scripts.bisect.search import Answer, Boundary, max_questions
from repros.text.wording import count


def describe_steps(question: Question) -> list[str]:
    """Return the steps of a search, and its cost at most."""
    older, newer = question.older, question.newer
    versions = ", ".join(str(release.version) for release in question.releases)
    lines = [
        f"{count(len(question.releases), 'release')} of {question.package} to choose from: {versions}",
        f"1. {question.start.version}: must show the failure",
    ]
    if older:
        lines.append(
            f"{len(lines)}. beginning of the failure, {_describe_halving(older, older[::-1][len(older) // 2])}"
        )
    if newer:
        lines.append(f"{len(lines)}. end of the failure, {_describe_halving(newer, newer[len(newer) // 2])}")
    most = count(max_questions(range(len(older)), range(len(newer))), "release")
    sizes = [release.size for release in question.releases if release.size is not None]
    download = f"at most {max(sizes) / 1e6:.0f} MB to download for each; " if sizes else ""
    runs = f"{NEEDED_RUNS} to {MAX_RUNS} runs of each on stack {question.stack.name}"
    return [
        *lines,
        f"at most {most}, plus those that give no answer and those that further jobs try meanwhile; {download}{runs}",
    ]


def _describe_halving(side: tuple[PackageRelease, ...], middle: PackageRelease) -> str:
    span = f"{side[0].version} to {side[-1].version}"
    return f"in {span}: {middle.version} first, at most {count(len(side).bit_length(), 'release')}"


def describe_outcome(bisection: Bisection) -> str:
    """Return the outcome in sentences that a reader without this project understands."""
    question, boundaries, answers = bisection.question, bisection.boundaries, bisection.answers
    intro = _describe_setting(question)
    if boundaries.begins is None or boundaries.ends is None:
        why = answers[len(question.older)].why
        start = _format_release(question.start)
        return f"{intro} {start} does not show the failure ({why}); name a release that does with --bad."
    versions = ", ".join(f"{answer.version} {answer.answer}" for _, answer in sorted(answers.items()))
    tried = f"{len(answers)} of {count(len(question.releases), 'release')} tried"
    sentences = [
        intro,
        _describe_side(question, boundaries.begins, begins=True),
        _describe_side(question, boundaries.ends, begins=False),
        f"{tried}, each decided by {NEEDED_RUNS} of at most {MAX_RUNS} runs: {versions}.",
        *_describe_unknown(answers),
    ]
    return " ".join(filter(None, sentences))


def _describe_setting(question: Question) -> str:
    spec, stack = question.spec, question.stack
    cell = f"{spec.repro.id} ({spec.repro.title}), {spec.variant.name}, {spec.strategy} on {spec.device}"
    others = ", ".join(str(r) for r in stack.requirements if r.name != question.package)
    return f"{cell}, with the versions of stack {stack.name} ({others}) except for {question.package}:"


def _describe_side(question: Question, boundary: Boundary, *, begins: bool) -> str:
    """Return a sentence on the beginning or the end of the failure; empty if that side was not searched."""
    if not (question.older if begins else question.newer) and question.good is not None:
        return ""
    outer, beyond, other = ("First", "older", "Last") if begins else ("Last", "newer", "First")
    answer = f"{outer} affected release: {_format_release(question.releases[boundary.affected])}"
    if boundary.free is None:
        candidate = "oldest" if begins else "newest"
        return (
            f"{answer}{f'; the {beyond} ones gave no answer' if boundary.unknown else f', the {candidate} candidate'}."
        )
    free, direction = _format_release(question.releases[boundary.free]), "before" if begins else "after"
    return f"{answer}. {other} release {direction} it without the failure: {free}.{_describe_gap(question, boundary)}"


def _format_release(release: PackageRelease) -> str:
    return f"{release.version} ({release.date})"


def _describe_gap(question: Question, boundary: Boundary) -> str:
    if not boundary.unknown:
        return ""
    return f" No answer between them: {', '.join(str(question.releases[at].version) for at in boundary.unknown)}."


def _describe_unknown(answers: Mapping[int, ReleaseAnswer]) -> list[str]:
    """Return a sentence for each reason why releases gave no answer."""
    reasons: dict[str, list[str]] = {}
    for _, answer in sorted(answers.items()):
        if answer.answer is Answer.UNKNOWN:
            reasons.setdefault(answer.why, []).append(answer.version)
    return [f"Unknown: {', '.join(versions)} ({why})." for why, versions in reasons.items()]
