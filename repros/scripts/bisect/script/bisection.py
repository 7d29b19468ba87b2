"""One bisection of a script: the two releases that are compared, and the search between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from repros.engine import environments
from repros.engine.environment import locked_environment
from repros.engine.environments.uv import ReportProgress
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import ReleaseAnswer
from repros.scripts.bisect.prober import Prober
from repros.scripts.bisect.script.examine import BOTH
from repros.scripts.bisect.script.question import ScriptQuestion
from repros.scripts.bisect.search import Answer, Boundary, scan, search
from repros.scripts.try_.command import Command, refuse_missing_program
from repros.scripts.try_.needs import Needs, find_lacking, package_of
from repros.scripts.try_.orphans import adopted


@dataclass(frozen=True)
class ScriptBisection:
    """The outcome; a release's number is its index in `question.releases`."""

    question: ScriptQuestion
    answers: Mapping[int, ReleaseAnswer]
    old: int
    """The older of the two releases that are compared."""
    new: int
    change: Boundary | None
    """Where what `new` shows begins; None if `old` shows the same."""

    def shown(self, number: int) -> str:
        """Return what an examined release shows."""
        return self.answers[number].shown


def run_script_bisection(
    question: ScriptQuestion,
    folder: Path,
    report_progress: ReportProgress,
    *,
    every: bool = False,
    jobs: int | None = None,
) -> ScriptBisection:
    """Answer a question. An interruption ends all processes of the program, and is passed on.

    Args:
        question: the question.
        folder: for logs and for the answers, which let an interrupted bisection be resumed.
        report_progress: receives a line for every answer.
        every: whether to examine every release between the two instead of as few as possible.
        jobs: number of releases to examine at once; None: as many as there is room for.

    Raises:
        ReprosError: the stack lacks what the program needs; no release gives an answer, or not one that was named; or
            the output of one of the two matches both patterns.
        EnvironmentFailedError: the stack's environment, or a copy of it, cannot be made.
    """
    _refuse_lacking(question, report_progress)
    with adopted(), Prober(question, folder, report_progress, jobs) as prober:
        old, new = _find_ends(question, prober)
        first, last = prober.answers[old].shown, prober.answers[new].shown
        change = None
        if every or first != last:
            prober.begin_search(partial(_side, first, last))
            change = (scan if every else search)(range(old, new), new, (), prober).begins
    return ScriptBisection(question, prober.answers, old, new, change if first != last else None)


def _side(first: str, last: str, answer: ReleaseAnswer) -> Answer:
    """Return whether a release shows the same as the newer end; no answer if it shows the same as neither end."""
    return Answer.YES if answer.shown == last else Answer.NO if answer.shown == first else Answer.UNKNOWN


def _refuse_lacking(question: ScriptQuestion, report_progress: ReportProgress) -> None:
    """Refuse a stack that lacks a package of the program, other than the one whose releases are exchanged.

    If the stack lacks that package, too, only a release's own environment shows what is missing.
    """
    stack = question.stack
    python = environments.ensure(stack, report_progress)
    needs = question.task.needs
    modules = tuple(name for name in needs.modules if package_of(name) != question.package)
    others = tuple(package for package in needs.requirements if package.name != question.package)
    lacking = find_lacking(Needs(modules, others), replace(locked_environment(stack), python=python))
    if lacking and question.package in stack.pins:
        raise ReprosError(
            f"stack {stack.name} lacks {', '.join(lacking.values())}, which {question.task.script.origin} needs; "
            "name another with --stack."
        )
    if isinstance(question.task.script, Command):
        refuse_missing_program(question.task.script, python)


def _find_ends(question: ScriptQuestion, prober: Prober) -> tuple[int, int]:
    """Return the oldest and the newest release that give an answer, or those that the user named.

    Releases without an answer are too old or too new for the stack: a search finds where they end.
    """
    ends = old, new = 0, len(question.releases) - 1
    _probe_all(prober, ends)
    for number, is_named in zip(ends, (question.oldest, question.newest), strict=True):
        _refuse_end(question, prober.answers[number], is_named=is_named)
    fits = question.can_compare
    has_old, has_new = (fits(prober.answers[number]) for number in ends)
    if not (has_old and has_new):
        prober.begin_search(partial(_can_be_asked, fits))
        start = new if has_new else old if has_old else question.own
        start = len(question.releases) // 2 if start is None else start
        older = range(0) if has_old else range(start)
        newer = range(0) if has_new else range(start + 1, new + 1)
        bounds = search(older, start, newer, prober)
        if bounds.begins is None or bounds.ends is None:
            raise ReprosError(_no_answer(question, prober, start))
        old, new = (0 if has_old else bounds.begins.affected), (new if has_new else bounds.ends.affected)
    if old == new:
        only = prober.answers[old]
        raise ReprosError(f"only {question.package} {only.version} gives an answer ({only.why}); {_WAY_OUT}")
    for number in (old, new):
        _refuse_end(question, prober.answers[number], is_named=False)
    return old, new


_WAY_OUT = "name releases with --from and --to, or another stack with --stack."


def _can_be_asked(fits: Callable[[ReleaseAnswer], bool], answer: ReleaseAnswer) -> Answer:
    return Answer.YES if fits(answer) else Answer.NO


def _probe_all(prober: Prober, numbers: Iterable[int]) -> None:
    """Examine releases side by side, and wait for their answers."""
    begun = list(numbers)
    for number in begun:
        prober.begin(number)
    for _ in begun:
        prober.next_answer()


def _refuse_end(question: ScriptQuestion, answer: ReleaseAnswer, *, is_named: bool) -> None:
    name = f"{question.package} {answer.version}"
    if answer.shown == BOTH:
        raise ReprosError(f"the output with {name} matches {BOTH}; expected two texts that exclude each other.")
    if is_named and not question.can_compare(answer):
        raise ReprosError(f"{name} gives no answer: {answer.why}; name another with --from or --to.")


def _no_answer(question: ScriptQuestion, prober: Prober, number: int) -> str:
    examined = ", ".join(str(question.releases[index].version) for index in sorted(prober.answers))
    return f"no release of {question.package} gives an answer, of {examined}: {prober.answers[number].why}; {_WAY_OUT}"
