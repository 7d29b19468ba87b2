"""Whether a stack trace shows a process inside a call that ends only when other ranks act.

Source: torch 2.0.1 and 2.15.0, the oldest and the newest of the stacks. Python shows only the function that called into
C++; :mod:`repros.engine.launch.deadlock` observes whether the call really waits.
"""

from __future__ import annotations

from repros.engine.launch.stacks import StackFrame, StackTrace

Calls = tuple[tuple[str, str], ...]
"""Pairs of the end of a file's path and the name of a function there; an empty name means all its functions."""

_FOR_RANKS: Calls = (
    # Every collective, `send` and `recv`, `barrier`, and `destroy_process_group`, which waits for pending work.
    ("torch/distributed/distributed_c10d.py", ""),
    ("torch/distributed/_functional_collectives.py", ""),
    # `_broadcast_coalesced` and `_verify_params_across_processes`, as DDP and FSDP begin.
    ("torch/distributed/utils.py", ""),
    # DDP's reducer, in `forward`; in a backward it is the engine that waits for it.
    ("torch/nn/parallel/distributed.py", ""),
    ("torch/autograd/__init__.py", "backward"),
    ("torch/autograd/__init__.py", "grad"),
    ("torch/autograd/graph.py", "_engine_run_backward"),
)
"""Functions of torch that call into C++ code that waits for other ranks."""
_WITH_A_TIMEOUT: Calls = (("torch/distributed/distributed_c10d.py", "monitored_barrier"),)
"""Ends by itself, after its own timeout."""

_FOR_CHILDREN: Calls = (
    ("torch/multiprocessing/spawn.py", "join"),
    ("multiprocessing/process.py", "join"),
    ("subprocess.py", "wait"),
)
"""Functions in which a launcher, which is no rank, waits for the ranks that it has started."""

_AT_EXIT: Calls = (
    *_FOR_RANKS[:1],
    ("multiprocessing/process.py", "join"),
    ("multiprocessing/util.py", "_exit_function"),
    ("repros/inside/leader.py", "run_and_leave"),
)
"""Functions of libraries in which a rank waits at the interpreter's exit, after its script has returned."""

_BACKGROUND: Calls = (
    # Progress bars.
    ("tqdm/_monitor.py", "run"),
    ("rich/live.py", "run"),
    ("callbacks/progress/rich_progress.py", "run"),
    # Polls every five seconds, and ends the ranks if one has failed.
    ("strategies/launchers/subprocess_script.py", "run"),
    # Sends what the main thread has put into a queue, such as indices to a data loader's workers.
    ("multiprocessing/queues.py", "_feed"),
)
"""Functions of background threads that run on during a deadlock and release no rank."""

_PLUMBING: Calls = (
    ("selectors.py", ""),
    ("threading.py", ""),
    ("subprocess.py", ""),
    ("multiprocessing/connection.py", ""),
    ("multiprocessing/popen_fork.py", ""),
    ("torch/_ops.py", ""),
)
"""Inner calls that implement a wait, and do not show for what."""


def call_that_waits(threads: list[StackTrace], *, is_rank: bool, is_finished: bool) -> str | None:
    """Return the function in which a process waits for ranks, or None if one of its threads may do other work.

    Args:
        threads: the stack of each thread, the main thread's last.
        is_rank: whether the process is a rank rather than a launcher.
        is_finished: whether its script has returned.
    """
    if not threads or not all(map(_releases_nobody, threads[:-1])):
        return None
    main = threads[-1]
    if is_finished and not main:
        return "the interpreter's exit"
    return _waits_in(main, _AT_EXIT if is_finished else _FOR_RANKS if is_rank else _FOR_CHILDREN)


def _releases_nobody(stack: StackTrace) -> bool:
    """Return whether a further thread runs no Python code, is a background thread, or waits for ranks itself."""
    return not stack or any(_is_any(frame, _BACKGROUND) for frame in stack) or _waits_in(stack, _FOR_RANKS) is not None


def _waits_in(stack: StackTrace, calls: Calls) -> str | None:
    """Return the function of the innermost call that is no plumbing, if it is one of `calls`."""
    frame = next((frame for frame in stack if _is_any(frame, calls) or not _is_any(frame, _PLUMBING)), None)
    if frame is None or not _is_any(frame, calls) or _is_any(frame, _WITH_A_TIMEOUT):
        return None
    return frame.function


def _is_any(frame: StackFrame, calls: Calls) -> bool:
    return any(frame.is_in(file) and function in {"", frame.function} for file, function in calls)
