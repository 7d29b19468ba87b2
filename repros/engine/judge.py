"""Expectation + observation -> verdict. Pure: the same values give the same verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from repros.engine.signature import describe, is_consequence, matches
from repros.model import (
    Cell,
    Ending,
    Expectation,
    Observation,
    Outcome,
    Process,
    Raised,
    Repeats,
    Result,
    Signature,
    Verdict,
)

_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Address already in use|EADDRINUSE|Too many open files"
    r"|File too large|Cannot allocate memory"
    r"|DefaultCPUAllocator: can't allocate memory|Resource temporarily unavailable"
    r"|CUDA out of memory|CUDA error: out of memory|CUDA-capable device\(s\) is/are busy"
)


@dataclass(frozen=True)
class _Reading:
    """An observation, read for its root cause."""

    broken: str | None
    """Why it cannot be judged."""
    failed: tuple[Process, ...]
    """The processes that failed on their own account; empty when everything returned.

    By rank where each of them shows the documented signature, else earliest first.
    """
    missing: int
    """Ranks that were expected and never seen."""


def judge(cell: Cell, observation: Observation) -> Result:
    """Say what the observation means against what the repro documents for the cell's environment."""
    expected = cell.expectation
    reading = _read(cell, observation)
    verdict, reason = _verdict(expected, reading)
    cause = reading.failed[0] if reading.failed else None
    signature = describe(cause, expected.signature) if cause else None
    return Result(cell, verdict, reason, signature, observation)


def together(results: Sequence[Result]) -> Result:
    """Return one result for the repeats of one cell: how it always ended, or `flaky`.

    To end the same is to have the same verdict and the same signature. A repeat that could not be judged says nothing
    either way: it makes no cell flaky, and does not count as agreeing.
    """
    judged = [result for result in results if result.verdict is not Verdict.INFRA]
    if not judged:
        return replace(results[0], repeats=Repeats(len(results), 0))
    ends = Counter((result.verdict, result.signature) for result in judged)
    (usual, agreeing), *_ = ends.most_common()
    repeats = Repeats(len(results), agreeing)
    others = [result for result in judged if (result.verdict, result.signature) != usual]
    if not others:
        result = judged[0]
        lost = len(results) - len(judged)
        reason = f"{result.reason}; {lost} of {len(results)} runs could not be judged" if lost else result.reason
        return replace(result, reason=reason, repeats=repeats)
    told = ", ".join(f"{count} {verdict}" + (f" ({text})" if text else "") for (verdict, text), count in ends.items())
    return replace(others[0], verdict=Verdict.FLAKY, reason=f"of {len(results)} runs: {told}", repeats=repeats)


def _verdict(expected: Expectation, reading: _Reading) -> tuple[Verdict, str]:
    should_fail = expected.outcome is Outcome.FAILS
    if reading.broken:
        return Verdict.INFRA, reading.broken
    if not reading.failed:
        if reading.missing:
            return Verdict.DIFFERENT, f"{reading.missing} of the ranks never ran"
        if should_fail:
            return Verdict.GONE, "returned, although these versions are documented to fail"
        return Verdict.CLEAN, "returned, as expected"
    strange = [process for process in reading.failed if not matches(process, expected.signature)]
    if strange:
        other = strange[0]
        return Verdict.DIFFERENT, f"{other.name} ended otherwise: {describe(other, expected.signature)}"
    witness = reading.failed[0].name
    if should_fail:
        return Verdict.REPRODUCED, f"{witness} showed the documented signature"
    if expected.is_fix:
        return Verdict.UNFIXED, f"{witness} showed the documented signature, although this variant is a fix"
    return (
        Verdict.REGRESSED,
        f"{witness} showed the documented signature, although these versions lie outside the range",
    )


def _read(cell: Cell, observation: Observation) -> _Reading:
    """Find the processes that failed on their own account."""
    signature = cell.expectation.signature
    ranks = list(observation.ranks)
    failed = sorted(
        (p for p in ranks if p.ending is not Ending.RETURNED), key=lambda process: (process.at, process.pid)
    )
    weights = [_weight(process, signature) for process in failed]
    own = tuple(process for process, weight in zip(failed, weights, strict=True) if weight == max(weights))
    # A repro may document what is otherwise the machine's fault, such as an end by SIGKILL.
    strange = [process for process in own if not matches(process, signature)]
    if not strange:
        # Ranks that fail side by side do so in an order of chance, and a message may hold what only one of them saw.
        own = tuple(sorted(own, key=lambda process: (process.rank is None, process.rank or 0)))
    broken = observation.broken or next((why for why in map(_machine_failure, strange) if why), None)
    seen = {process.rank for process in ranks if _took_part(process, cell, observation)}
    return _Reading(broken, own, missing=max(0, cell.processes - len(seen)))


def _took_part(process: Process, cell: Cell, observation: Observation) -> bool:
    """Whether a process was really one of the cell's ranks.

    A warm server numbers the ranks that it forks, so there the number proves nothing: they must have met in a process
    group.
    """
    if process.rank is None:
        return False
    return cell.processes == 1 or observation.launch != "warm" or process.world_size == cell.processes


def _weight(process: Process, signature: Signature) -> int:
    """How much a failed process's ending speaks for itself; only the weightiest endings of a run are judged.

    The rest are what a first failure drags behind it: an exit code that a launcher passes on, a signal by
    which it takes its other ranks down, a connection that a dead peer closed, a wait for somebody who is gone.
    """
    if matches(process, signature):
        # Even a documented hang: whoever waits for a rank that was killed hangs in the same way.
        return 2 if process.ending is Ending.TIMED_OUT else 4
    if _machine_error(process):
        return 4
    match process.ending:
        case Ending.RAISED:
            # What was raised last and what it all began with; between them stands what a library made of it.
            return 1 if any(map(is_consequence, process.chain[:1] + process.chain[-1:])) else 4
        case Ending.SIGNALLED:
            return 2 if process.signal in {"SIGTERM", "SIGKILL", "SIGSTOP", None} else 4
        case Ending.EXITED:
            return 3
        case Ending.TIMED_OUT | Ending.STOPPED | Ending.RETURNED:
            return 0
        case _:
            assert_never(process.ending)


def _machine_failure(process: Process) -> str | None:
    """Return why a process's failure says nothing about the repro, if the machine is to blame."""
    if error := _machine_error(process):
        said = f"{error.name}: {error.message}".splitlines()[0].removesuffix(": ")
        return f"{process.name} met a failure of the machine: {said}"
    if process.ending is Ending.SIGNALLED and process.signal == "SIGKILL":
        return f"{process.name} was killed from outside (SIGKILL), for want of memory perhaps"
    if process.ending is Ending.SIGNALLED and process.signal == "SIGSTOP":
        return f"{process.name} was stopped from outside (SIGSTOP)"
    return None


def _machine_error(process: Process) -> Raised | None:
    """Return the exception of a process's chain that speaks of the machine: its disk, memory, ports or files."""
    return next(
        (raised for raised in process.chain if raised.name == "MemoryError" or _MACHINE.search(raised.message)), None
    )
