"""Root causes: the processes of an observation whose failures no other failure explains."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from repros.model import Ending, Launch, Observation, Process, ProcessRole, Raised

# From Gloo, NCCL's watchdog, the stores and the launchers.
_CONSEQUENCE_MESSAGES = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Socket closed|socket has been closed"
    r"|recvValue failed|sendBytes failed|Timed out waiting \d+ms for (recv|send)|Socket Timeout"
    r"|wait timeout after"
    r"|Gloo connectFullMesh failed|remote process exited|failed to recv, got 0 bytes|Connection refused"
    r"|Application timeout caused pair closure|Watchdog caught collective operation timeout"
    r"|NCCL communicator was aborted|client socket has timed out"
)
_CONSEQUENCE_TYPES = (
    "torch.multiprocessing.spawn.ProcessException",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    "exceptions.SIGTERMException",
    "builtins.KeyboardInterrupt",
    "torch.distributed.DistNetworkError",
    "torch.distributed.DistStoreError",
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
"""Descriptions of an end by a signal that no failure of the process itself sends."""
_INTERRUPTS = {"KeyboardInterrupt": "SIGINT", "SIGTERMException": "SIGTERM"}
"""The exceptions as which Python, Lightning and accelerate raise such a signal, by the last part of their names."""


@dataclass(frozen=True)
class RootCauses:
    """The processes of an observation whose failures no other failure explains."""

    broken: str | None
    """Why the observation shows nothing about the program: the engine or the machine failed."""
    failed: tuple[Process, ...]
    """The processes that failed by themselves; empty if every process returned.

    In the order of ranks if all of them ended as documented, else in the order of time.
    """
    missing: int
    """Expected ranks that never took part."""


def find_causes(observation: Observation, ranks: int, is_documented: Callable[[Process], bool]) -> RootCauses:
    """Find the processes whose failures no other failure explains.

    Args:
        observation: the run.
        ranks: the expected world size.
        is_documented: returns whether a process ended in the documented way, which is then no failure of the machine.
    """
    processes = list(observation.ranks)
    failed = sorted(
        (p for p in processes if p.ending is not Ending.RETURNED), key=lambda process: (process.at, process.pid)
    )
    weights = [_weight(process, is_documented=is_documented(process)) for process in failed]
    own = tuple(process for process, weight in zip(failed, weights, strict=True) if weight == max(weights))
    # A repro may document what is otherwise a failure of the machine, such as an end by SIGKILL.
    others = [process for process in own if not is_documented(process)]
    if not others:
        # The order in which ranks fail side by side is random, and a message may contain what only one rank saw.
        own = tuple(sorted(own, key=lambda process: (process.rank is None, process.rank or 0)))
    broken = observation.broken or next((reason for reason in map(_machine_failure, others) if reason), None)
    present = {process.rank for process in processes if _took_part(process, ranks, observation.launch)}
    return RootCauses(broken, own, missing=max(0, ranks - len(present)))


def is_consequence(raised: Raised) -> bool:
    """Return whether an exception only reports that another process failed."""
    types = (raised.type, *raised.bases)
    return bool(_CONSEQUENCE_MESSAGES.search(raised.message)) or any(
        name.endswith(_CONSEQUENCE_TYPES) for name in types
    )


def is_machine_error(message: str) -> bool:
    """Return whether an error's message reports a failure of the machine: disk, memory, ports, files."""
    return _MACHINE_ERRORS.search(message) is not None


def _took_part(process: Process, ranks: int, launch: Launch) -> bool:
    """Return whether a process really was one of the ranks.

    A warm server numbers the ranks that it forks, so a rank number proves nothing there: the rank must have joined a
    process group of the right size.
    """
    if process.rank is None:
        return False
    return ranks == 1 or launch is not Launch.WARM or process.world_size == ranks


def _weight(process: Process, *, is_documented: bool) -> int:
    """Return how likely a failed process's ending is a root cause; only the highest weight of a run is judged.

    Lower weights are consequences of a first failure: an exit code that a launcher passes on, a signal by which it
    ends its other ranks, a connection that a dead peer closed, a wait for a rank that has ended.
    """
    if is_documented:
        # A documented hang weighs less: a rank that waits for a killed one hangs in the same way.
        return 2 if process.ending is Ending.TIMED_OUT else 4
    if _machine_error(process):
        return 4
    if process.role is ProcessRole.LEADER:
        return 2  # as much as its ranks, which die with it unobserved
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
    """Return why a process's failure shows nothing about the program, if the machine caused it."""
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
