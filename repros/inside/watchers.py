"""Watchers: make a process report its exceptions, exits, process groups and `multiprocessing` ranks to its recorder.

How an exception is found depends on how the process was created. In the main process and in re-launched ranks it is
passed to `sys.excepthook`, or is in `sys.last_value` if the script set its own excepthook. For processes of
`multiprocessing` (spawned and forked ranks), `run` is wrapped, since `multiprocessing` and torch's `spawn` catch the
exception, print it and leave with an exit code; torch calls `sys.exit(1)` inside the `except`, so the exception is the
context of that SystemExit. `os.waitpid` is wrapped because only a parent learns that its child died of a signal.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Protocol

from repros.inside.recorder import ProcessRecorder, current_rank

real_exit = os._exit
_real_waitpid = os.waitpid


def watch_exceptions(recorder: ExceptionRecorder) -> None:
    """Record the exception that ends this process."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        recorder.exception(error, "excepthook")
        previous(kind, error, trace)

    sys.excepthook = excepthook


def watch_exits(recorder: ProcessRecorder) -> None:
    """Record how this process and its children end."""
    asked_for: Any = None
    real_sys_exit = sys.exit

    def sys_exit(status: Any = None) -> NoReturn:
        nonlocal asked_for
        asked_for = status if status is None or isinstance(status, int) else 1
        real_sys_exit(status)

    def finished() -> None:
        last = getattr(sys, "last_value", None)
        if not recorder.raised and last is not None:
            recorder.exception(last, "last_value")
        if not recorder.raised:
            recorder.write("finished", rank=current_rank(), code=asked_for)

    def exit_now(status: int) -> NoReturn:
        recorder.write("exit", code=status)
        real_exit(status)

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        reaped, status = _real_waitpid(pid, options)
        if reaped:
            recorder.write("reaped", child=reaped, status=status)
        return reaped, status

    def last_of_all() -> None:
        atexit.register(finished)

    # Exit handlers run in reverse order, so one that is registered at the last moment runs first: the script and its
    # threads have ended, and what other handlers do (an abort, say) belongs to the interpreter's exit. Where Python
    # lacks `_register_atexit`, the handler runs among the last.
    getattr(threading, "_register_atexit", lambda act: act())(last_of_all)
    sys.exit = sys_exit
    os._exit = exit_now
    os.waitpid = waitpid


def watch_interrupts(recorder: ProcessRecorder) -> None:
    """Record SIGINT before it is raised: a library may take it for a wish to end a fit early, and the script goes on.

    Lightning did so until 2.1. The handler stays what `signal.default_int_handler` is, which `asyncio` asks for.
    """
    real = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not real:  # it is ignored, say
        return

    def default_int_handler(number: int, frame: Any) -> Any:
        recorder.write("interrupted", signal="SIGINT")
        return real(number, frame)

    signal.default_int_handler = default_int_handler
    signal.signal(signal.SIGINT, default_int_handler)


def watch_sigterm(recorder: ProcessRecorder, module: Any) -> None:
    """Record SIGTERM in a Lightning fit, which leaves the script by a SystemExit with the code 0.

    Args:
        recorder: writes it down.
        module: Lightning's `utilities.exceptions`.
    """
    original = getattr(module, "SIGTERMException", None)
    if original is None:  # before 2.0
        return
    real = original.__init__

    def initialise(self: Any, *args: Any) -> None:
        real(self, *args)
        recorder.write("interrupted", signal="SIGTERM")

    original.__init__ = initialise


def watch_process_groups(recorder: ProcessRecorder, module: Any) -> None:
    """Record the process groups that this process joins, once `torch.distributed.distributed_c10d` is imported.

    A timeout that the script gives to a group is recorded, too: a wait in that group ends then.
    """

    def joined(timeout: float | None) -> None:
        recorder.write("joined", rank=module.get_rank(), world_size=module.get_world_size(), timeout=timeout)

    _after(module, "init_process_group", joined)
    _after(module, "new_group", lambda timeout: recorder.write("group", timeout=timeout))


def _after(module: Any, name: str, act: Callable[[float | None], None]) -> None:
    """Call `act` after each call of a function of `distributed_c10d`, with the `timeout` it was given, in seconds."""
    import inspect  # torch has imported it; at the top it would delay processes without torch

    original = getattr(module, name)
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        timeout: Any = parameters.bind(*args, **options).arguments.get("timeout")
        # torch takes seconds, too.
        act(timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout)
        return result

    # In both modules. If torch.distributed is not imported yet, it will import the replacement from this module.
    for place in (module, sys.modules.get("torch.distributed")):
        if getattr(place, name, None) is original:
            setattr(place, name, call)


class ExceptionRecorder(Protocol):
    """What takes the exception that ends a process."""

    raised: bool

    def write(self, event: str, **details: Any) -> None:
        """Record an event."""

    def exception(self, error: BaseException, where: str) -> None:
        """Record an exception."""


def watch_multiprocessing(recorder: ProcessRecorder, module: Any) -> None:
    """Record how processes of `multiprocessing` end, and end spawned ranks as soon as they are done."""
    watch_processes(recorder, module)
    bootstrap = module.BaseProcess._bootstrap

    def watched_bootstrap(self: Any, *arguments: Any, **options: Any) -> Any:
        status = bootstrap(self, *arguments, **options)
        # The rank is done and has cleaned up. During the interpreter's exit Gloo's threads sometimes abort (1 run of
        # 160 on torch 2.13), which the launcher would report as a failure of the rank.
        if status == 0 and _is_spawned_rank(self):
            real_exit(status)
        return status

    module.BaseProcess._bootstrap = watched_bootstrap


def watch_processes(recorder: ExceptionRecorder, module: Any) -> None:
    """Record how processes of `multiprocessing` end, once `multiprocessing.process` is imported."""
    run = module.BaseProcess.run

    def watched_run(self: Any) -> None:
        if _is_spawned_rank(self):
            recorder.write("start", ppid=os.getppid(), role="rank", rank=self._args[1])
        try:
            run(self)
        except BaseException as error:
            if isinstance(error, SystemExit) and error.__context__ is not None:
                error = error.__context__
            if not isinstance(error, SystemExit):
                recorder.exception(error, "process")
            raise
        else:
            recorder.write("finished", rank=None)

    module.BaseProcess.run = watched_run


def _is_spawned_rank(process: Any) -> bool:
    return getattr(getattr(process, "_target", None), "__module__", None) == "torch.multiprocessing.spawn"
