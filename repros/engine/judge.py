"""The judge: derive the verdict from expectation and observation. Pure: equal values give equal verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from repros.engine.consequences import is_consequence
from repros.engine.signature import describe, matches
from repros.model import (
    Cell,
    CellResult,
    Ending,
    Expectation,
    ExpectedOutcome,
    Launch,
    Observation,
    Process,
    ProcessRole,
    Raised,
    Repeats,
    Signature,
    Verdict,
)

_MACHINE_ERRORS = re.compile(
    r"No space left on device|Disk quota exceeded|Address already in use|EADDRINUSE|Too many open files"
    r"|File too large|[Cc]annot allocate memory|failed to map segment from shared object|std::bad_alloc"
    r"|can't start new thread"
    r"|DefaultCPUAllocator: can't allocate memory|Resource temporarily unavailable"
    r"|CUDA out of memory|CUDA error: out of memory|CUDA-capable device\(s\) is/are busy"
)

_FROM_OUTSIDE = {
    "SIGKILL": "was killed from outside (SIGKILL), perhaps because memory ran out",
    "SIGSTOP": "was stopped from outside (SIGSTOP)",
    **dict.fromkeys(("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGXCPU"), "was ended from outside ({signal})"),
}
"""What is said of a process that ended by a signal which no failure of its own sends."""
_INTERRUPTS = {"KeyboardInterrupt": "SIGINT", "SIGTERMException": "SIGTERM"}
"""The exceptions as which Python, Lightning and accelerate raise such a signal, by the last part of their names."""


@dataclass(frozen=True)
class _RootCauses:
    """The processes of an observation whose failure no other failure explains."""

    broken: str | None
    """Why the observation cannot be judged."""
    failed: tuple[Process, ...]
    """The processes that failed by themselves; empty if every process returned.

    In the order of ranks if all of them match the signature, else in the order of time.
    """
    missing: int
    """Expected ranks that never took part."""


def judge(cell: Cell, observation: Observation) -> CellResult:
    """Compare an observation with what the repro documents for the cell's environment, and return the result."""
    expected = cell.expectation
    causes = _root_causes(cell, observation)
    verdict, reason = _verdict(expected, causes)
    if observation.standstill:
        reason = f"{reason}, {observation.standstill}"
    cause = causes.failed[0] if causes.failed else None
    signature = describe(cause, expected.signature) if cause else None
    return CellResult(cell, verdict, reason, signature, observation)


def combine(results: Sequence[CellResult]) -> CellResult:
    """Return one result for the repeats of one cell: the outcome that all share, or `flaky`.

    An outcome is a verdict with its signature. A repeat that could not be judged does not make a cell flaky and does
    not count as agreeing.
    """
    judged = [result for result in results if result.verdict is not Verdict.INFRA]
    if not judged:
        return replace(results[0], repeats=Repeats(len(results), 0))
    outcomes = Counter((result.verdict, result.signature) for result in judged)
    (usual, agreeing), *_ = outcomes.most_common()
    repeats = Repeats(len(results), agreeing)
    others = [result for result in judged if (result.verdict, result.signature) != usual]
    if not others:
        result = judged[0]
        unjudged = len(results) - len(judged)
        reason = (
            f"{result.reason}; {unjudged} of {len(results)} runs could not be judged" if unjudged else result.reason
        )
        return replace(result, reason=reason, repeats=repeats)
    counts = ", ".join(f"{n} {verdict}" + (f" ({text})" if text else "") for (verdict, text), n in outcomes.items())
    return replace(others[0], verdict=Verdict.FLAKY, reason=f"of {len(results)} runs: {counts}", repeats=repeats)


def _verdict(expected: Expectation, causes: _RootCauses) -> tuple[Verdict, str]:
    should_fail = expected.outcome is ExpectedOutcome.FAILS
    if causes.broken:
        return Verdict.INFRA, causes.broken
    if not causes.failed:
        if causes.missing:
            return Verdict.DIFFERENT, f"{causes.missing} of the ranks never ran"
        if should_fail:
            return Verdict.GONE, "returned, although these versions are documented to fail"
        return Verdict.CLEAN, "returned, as expected"
    others = [process for process in causes.failed if not matches(process, expected.signature)]
    if others:
        return Verdict.DIFFERENT, f"{others[0].name} ended otherwise: {describe(others[0], expected.signature)}"
    witness = causes.failed[0].name
    if should_fail:
        return Verdict.REPRODUCED, f"{witness} showed the documented signature"
    if expected.is_fix:
        return Verdict.UNFIXED, f"{witness} showed the documented signature, although this variant is a fix"
    return (
        Verdict.REGRESSED,
        f"{witness} showed the documented signature, although these versions lie outside the range",
    )


def _root_causes(cell: Cell, observation: Observation) -> _RootCauses:
    """Find the processes whose failure no other failure explains."""
    signature = cell.expectation.signature
    ranks = list(observation.ranks)
    failed = sorted(
        (p for p in ranks if p.ending is not Ending.RETURNED), key=lambda process: (process.at, process.pid)
    )
    weights = [_weight(process, signature) for process in failed]
    own = tuple(process for process, weight in zip(failed, weights, strict=True) if weight == max(weights))
    # A repro may document what is otherwise a failure of the machine, such as an end by SIGKILL.
    others = [process for process in own if not matches(process, signature)]
    if not others:
        # The order in which ranks fail side by side is random, and a message may contain what only one rank saw.
        own = tuple(sorted(own, key=lambda process: (process.rank is None, process.rank or 0)))
    broken = observation.broken or next((why for why in map(_machine_failure, others) if why), None)
    seen = {process.rank for process in ranks if _took_part(process, cell, observation)}
    return _RootCauses(broken, own, missing=max(0, cell.processes - len(seen)))


def _took_part(process: Process, cell: Cell, observation: Observation) -> bool:
    """Return whether a process really was one of the cell's ranks.

    A warm server numbers the ranks that it forks, so a rank number proves nothing there: the rank must have joined a
    process group of the right size.
    """
    if process.rank is None:
        return False
    return cell.processes == 1 or observation.launch is not Launch.WARM or process.world_size == cell.processes


def _weight(process: Process, signature: Signature) -> int:
    """Return how likely a failed process's ending is a root cause; only the highest weight of a run is judged.

    Lower weights are consequences of a first failure: an exit code that a launcher passes on, a signal by which it
    ends its other ranks, a connection that a dead peer closed, a wait for a rank that is gone.
    """
    if matches(process, signature):
        # A documented hang weighs less: a rank that waits for a killed one hangs in the same way.
        return 2 if process.ending is Ending.TIMED_OUT else 4
    if _machine_error(process):
        return 4
    if process.role is ProcessRole.LEADER:
        return 2  # as much as its ranks, which die with it, and nobody sees how
    match process.ending:
        case Ending.RAISED:
            # The first and the last exception of the chain decide; libraries raise their own in between.
            return 1 if any(map(is_consequence, process.chain[:1] + process.chain[-1:])) else 4
        case Ending.SIGNALLED:
            return 2 if process.signal is None or process.signal in _FROM_OUTSIDE else 4
        case Ending.EXITED:
            return 3
        case Ending.TIMED_OUT | Ending.STOPPED | Ending.RETURNED:
            return 0
        case _:
            assert_never(process.ending)


def _machine_failure(process: Process) -> str | None:
    """Return why a process's failure says nothing about the repro, if the machine caused it."""
    if error := _machine_error(process):
        text = f"{error.name}: {error.message}".splitlines()[0].removesuffix(": ")
        return f"{process.name} met a failure of the machine: {text}"
    raised = (_INTERRUPTS.get(raised.type.rpartition(".")[2]) for raised in process.chain)
    number = process.signal or next(filter(None, raised), None)
    if number in _FROM_OUTSIDE:
        return f"{process.name} {_FROM_OUTSIDE[number].format(signal=number)}"
    if process.role is ProcessRole.LEADER:
        return f"{process.name}, which is this project's own, failed"
    return None


def _machine_error(process: Process) -> Raised | None:
    """Return the exception of a process's chain that reports a failure of the machine: disk, memory, ports, files."""
    return next(
        (raised for raised in process.chain if raised.name == "MemoryError" or is_machine_error(raised.message)), None
    )


def is_machine_error(message: str) -> bool:
    """Return whether an error's message reports a failure of the machine: disk, memory, ports, files."""
    return _MACHINE_ERRORS.search(message) is not None
