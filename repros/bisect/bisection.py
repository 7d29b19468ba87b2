"""One bisection: the question, the releases to choose from, and what each of them answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros import environments
from repros.bisect.releases import Release
from repros.bisect.search import Answer, Finding, confirm, scan, search
from repros.bisect.swap import Swap
from repros.engine.cells import is_warm, run_cell
from repros.engine.digest.inputs import inputs
from repros.engine.environment import locked_environment
from repros.engine.launch import Servers
from repros.engine.pipeline import new_log_folder
from repros.engine.plan import CellSpec, plan
from repros.engine.probe import ProbeError, probe
from repros.environments.uv import Say, UvError
from repros.errors import ReprosError
from repros.model import Cell, Result, Stack, Unavailable

NEEDED, OF = 2, 3
"""Runs that must agree on a release, and the most that are made of it."""


class BisectionError(ReprosError):
    """A question that cannot be asked like this."""


@dataclass(frozen=True)
class Question:
    """Since when and until when a variant shows its failure, over the releases of one package on a stack."""

    spec: CellSpec
    stack: Stack
    package: str
    """Canonical name."""
    older: tuple[Release, ...]
    start: Release
    """Said to have the failure."""
    newer: tuple[Release, ...]
    good: Version | None = None
    """Said not to have it; then only its side is searched."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """All candidates, oldest first."""
        return (*self.older, self.start, *self.newer)

    def key(self, release: Release) -> str:
        """Return a digest of all that a release's answer depends on."""
        variant, strategy, device = self.spec.variant, self.spec.strategy, self.spec.device
        made_of = inputs(self.spec.repro, self.stack, device)
        told = f"{made_of} {variant.name} {strategy} {device} {self.package}=={release.version} {NEEDED}/{OF}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def question(
    spec: CellSpec, stack: Stack, package: str, releases: Sequence[Release], good: Version | None, bad: Version | None
) -> Question:
    """Put the question, from the candidates and what is said of some.

    Args:
        spec: the failing variant, its strategy and device.
        stack: where everything but the package comes from.
        package: its canonical name.
        releases: the candidates, oldest first.
        good: a release without the failure; None where neither end is known.
        bad: one that has it; None for the stack's own.

    Raises:
        BisectionError: the stack does not have the package, or a version that is named is no candidate.
    """
    own = locked_environment(stack).versions.get(package)
    if own is None:
        raise BisectionError(f"stack {stack.name} does not have {package}; name another with --on.")
    begin = bad or Version(own)
    by_version = {release.version: release for release in releases}
    for version in filter(None, (begin, good)):
        if version not in by_version:
            known = f"{releases[0].version} to {releases[-1].version}" if releases else "none at all"
            raise BisectionError(f"{package} {version} is no release that can be tried here; there are {known}.")
    low = good if good and good < begin else None
    high = good if good and good > begin else None
    older = [r for r in releases if r.version < begin and not high and (low is None or r.version >= low)]
    newer = [r for r in releases if r.version > begin and not low and (high is None or r.version <= high)]
    return Question(spec, stack, package, tuple(older), by_version[begin], tuple(newer), good)


@dataclass(frozen=True)
class Probe:
    """One release's answer."""

    version: str
    answer: Answer
    why: str
    """The verdicts of its runs and what they showed, or why there is none."""
    versions: Mapping[str, str]
    """What the environment held, of what the repro speaks of."""
    key: str


def bisect(asked: Question, folder: Path, say: Say, *, every: bool = False) -> tuple[Finding, dict[int, Probe]]:
    """Answer the question; numbers in the finding are places in `asked.releases`.

    Args:
        asked: the question.
        folder: for the logs, and for the answers, which an interrupted bisection takes up again.
        say: takes a line for every answer.
        every: ask every release rather than as few as can be.
    """
    memory = folder / "answers.jsonl"
    known = {probe.key: probe for probe in remembered(memory)}
    probes: dict[int, Probe] = {}
    with ExitStack() as lent:
        swap: Callable[[Release], Probe] | None = None

        def ask(number: int) -> Answer:
            nonlocal swap
            release = asked.releases[number]
            key = asked.key(release)
            if key not in known:
                # Only now: what is known already needs no environment.
                swap = swap or _prober(asked, lent.enter_context(environments.copy(asked.stack, say)), folder)
                probes[number] = swap(release)
                _remember(memory, probes[number])
            else:
                probes[number] = known[key]
            say(f"{asked.package} {release.version} ({release.date}): {probes[number].answer}: {probes[number].why}")
            return probes[number].answer

        first, last = len(asked.older), len(asked.older) + 1
        find = scan if every else search
        finding = find(range(first), first, range(last, last + len(asked.newer)), ask)
    return finding, probes


def _prober(asked: Question, python: Path, folder: Path) -> Callable[[Release], Probe]:
    """Return what answers for a release in the environment of that interpreter."""
    swap = Swap(asked.stack, asked.package, python)
    runs = new_log_folder(folder / "answers.jsonl")

    def answer(release: Release) -> Probe:
        version, key = str(release.version), asked.key(release)
        try:
            swap.install(release.version)
        except UvError as error:
            return Probe(version, Answer.UNKNOWN, f"cannot be installed: {error}", {}, key)
        try:
            there = probe(python, asked.stack.name, sim=asked.spec.device.value == "sim")
        except ProbeError as error:
            return Probe(version, Answer.UNKNOWN, str(error), {}, key)
        (item,) = plan([asked.spec], lambda _: [there])
        if isinstance(item, Unavailable):
            return Probe(version, Answer.UNKNOWN, f"unavailable: {item.reason}", {}, key)
        results: list[Result] = []

        def run() -> Answer:
            results.append(run_cell(item, runs / version / str(len(results) + 1), servers=warm))
            return _answer(results[-1])

        with Servers(runs / version / "servers") as servers:
            warm = servers if is_warm(item) else None
            decided = confirm(run, NEEDED, OF)
        return Probe(version, decided, _why(results), _telling(item, asked.package), key)

    return answer


def _answer(result: Result) -> Answer:
    """Return what a run says of its release. Another failure than the documented one says nothing."""
    if result.verdict.shows_failure:
        return Answer.YES
    return Answer.NO if result.verdict.ran_clean else Answer.UNKNOWN


def _why(results: Sequence[Result]) -> str:
    """Return what the runs showed, the same things together: `2 x RuntimeError: ...`."""
    told = [
        result.signature or "ran to its end"
        if _answer(result) is not Answer.UNKNOWN
        else f"{result.verdict}: {result.reason}"
        for result in results
    ]
    return "; ".join(f"{told.count(text)} x {text}" for text in dict.fromkeys(told))


def _telling(cell: Cell, package: str) -> dict[str, str]:
    names = {package, "torch", *(canonicalize_name(r.name) for r in cell.repro.dependencies)}
    return {name: cell.environment.versions[name] for name in sorted(names) if name in cell.environment.versions}


def remembered(file: Path) -> Iterator[Probe]:
    """Yield the answers of an earlier bisection; what an interrupt left half written is passed over."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            found: dict[str, Any] = json.loads(line)
            yield Probe(**{**found, "answer": Answer(found["answer"])})
        except (ValueError, KeyError, TypeError):
            continue


def _remember(file: Path, probe: Probe) -> None:
    """Keep an answer, unless it is only that something could not be installed: the network may be back next time."""
    if probe.versions:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as opened:
            # On a line of its own, whatever an interrupt may have left of the one before.
            opened.write("\n" + json.dumps(asdict(probe)))
