"""The call in which a rank waits for other ranks, by its stack trace; the watch and `repros try` share it."""

from __future__ import annotations

from collections.abc import Container, Iterable


def waiting_call(calls: Iterable[tuple[str, str]]) -> str | None:
    """Return the function that waits for other ranks: a collective's, `backward`, or None.

    Args:
        calls: the file's path, with forward slashes, and the function of each call, innermost first.
    """
    name = None
    for file, function in calls:
        if "/torch/autograd/" in file:
            return "backward"
        if "/torch/distributed/" not in file or "/torch/distributed/rpc/" in file:
            break
        # torch's own decorators are called `wrapper`; the outermost of its functions is the one that was called.
        name = function if function != "wrapper" else name
    return name


def waiting_check(functions: Container[str]) -> str:
    """Return the check that reports a wait, by what Lightning does on the rank.

    Args:
        functions: the names of all functions on its stack.
    """
    if "save_checkpoint" in functions:
        return "ranks_wait_apart_saving"
    if "_sync_ddp" in functions:
        return "ranks_wait_apart_logging" if "log" in functions else "ranks_wait_apart_epoch"
    return "ranks_wait_apart"
