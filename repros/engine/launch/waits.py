"""What a stack waits for: whether a process is inside a call that ends only when other ranks act.

Read in the sources of torch 2.0.1 and 2.15.0, the oldest and the newest of the stacks. All that Python shows of such a
wait is the function that called into C++; whether it really waits there is seen by :mod:`standstill`.
"""

from __future__ import annotations

from repros.engine.launch.stacks import StackFrame, StackTrace

Places = tuple[tuple[str, str], ...]
"""Ends of files' paths, each with the name of a function in it, or with none for all of them."""

_FOR_RANKS: Places = (
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
"""Files of torch, and functions in them where not all wait, from which C++ that waits for other ranks is called."""
_WITH_A_TIMEOUT: Places = (("torch/distributed/distributed_c10d.py", "monitored_barrier"),)
"""Ends by itself, after the timeout that it was given."""

_FOR_CHILDREN: Places = (
    ("torch/multiprocessing/spawn.py", "join"),
    ("multiprocessing/process.py", "join"),
    ("subprocess.py", "wait"),
)
"""Where a launcher, which is no rank, waits for the ranks that it has started."""

_AT_EXIT: Places = (
    *_FOR_RANKS[:1],
    ("multiprocessing/process.py", "join"),
    ("multiprocessing/util.py", "_exit_function"),
    ("repros/inside/leader.py", "run_and_leave"),
)
"""Where a rank whose script has returned waits: in what libraries do at the interpreter's exit."""

_BESIDE_A_HANG: Places = (
    # Progress bars.
    ("tqdm/_monitor.py", "run"),
    ("rich/live.py", "run"),
    ("callbacks/progress/rich_progress.py", "run"),
    # Ends the ranks if one has failed, and looks every five seconds.
    ("strategies/launchers/subprocess_script.py", "run"),
    # Sends what the main thread has put into a queue, such as indices to a data loader's workers.
    ("multiprocessing/queues.py", "_feed"),
)
"""What further threads may run that go on for ever beside a hang and release no rank."""

_PLUMBING: Places = (
    ("selectors.py", ""),
    ("threading.py", ""),
    ("subprocess.py", ""),
    ("multiprocessing/connection.py", ""),
    ("multiprocessing/popen_fork.py", ""),
    ("torch/_ops.py", ""),
)
"""Below a call that waits: they say how, and not for what."""


def call_that_waits(threads: list[StackTrace], *, is_rank: bool, is_finished: bool) -> str | None:
    """Return the function in which a process waits for ranks, or None if one of its threads may do something else.

    Args:
        threads: the stack of each thread, the main thread's last.
        is_rank: whether the process is a rank, and not a launcher.
        is_finished: whether its script has returned.
    """
    if not threads or not all(map(_releases_nobody, threads[:-1])):
        return None
    main = threads[-1]
    if is_finished and not main:
        return "the interpreter's exit"
    return _waits_in(main, _AT_EXIT if is_finished else _FOR_RANKS if is_rank else _FOR_CHILDREN)


def _releases_nobody(stack: StackTrace) -> bool:
    """Return whether a further thread has no Python code to run, is one of those beside a hang, or waits for ranks."""
    return (
        not stack or any(_is_any(frame, _BESIDE_A_HANG) for frame in stack) or _waits_in(stack, _FOR_RANKS) is not None
    )


def _waits_in(stack: StackTrace, places: Places) -> str | None:
    """Return the function of the innermost call, but for those that only say how one waits, if it is in the places."""
    frame = next((frame for frame in stack if _is_any(frame, places) or not _is_any(frame, _PLUMBING)), None)
    if frame is None or not _is_any(frame, places) or _is_any(frame, _WITH_A_TIMEOUT):
        return None
    return frame.function


def _is_any(frame: StackFrame, places: Places) -> bool:
    return any(frame.is_in(file) and function in {"", frame.function} for file, function in places)
