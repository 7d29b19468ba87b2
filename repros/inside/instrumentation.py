"""Instrumentation: record exceptions, exits, process groups and `multiprocessing` ranks of a process.

The source of an exception depends on how the process was created. In the main process and in re-launched ranks it is
the argument of `sys.excepthook`, or `sys.last_value` if the script set its own excepthook. In processes of
`multiprocessing` (spawned and forked ranks), `run` is wrapped, since `multiprocessing` and torch's `spawn` catch the
exception, print it and end with an exit code; torch calls `sys.exit(1)` inside the `except`, so the exception is the
context of that SystemExit. `os.waitpid` is wrapped because only a parent learns that a signal killed its child.
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


def record_exceptions(recorder: ExceptionRecorder) -> None:
    """Record the exception that ends this process."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        recorder.exception(error, "excepthook")
        previous(kind, error, trace)

    sys.excepthook = excepthook


def record_exits(recorder: ProcessRecorder) -> None:
    """Record the exits of this process and its children."""
    requested_status: Any = None
    real_sys_exit = sys.exit

    def sys_exit(status: Any = None) -> NoReturn:
        nonlocal requested_status
        requested_status = status if status is None or isinstance(status, int) else 1
        real_sys_exit(status)

    def finished() -> None:
        last = getattr(sys, "last_value", None)
        if not recorder.raised and last is not None:
            recorder.exception(last, "last_value")
        if not recorder.raised:
            recorder.write("finished", rank=current_rank(), code=requested_status)

    def exit_now(status: int) -> NoReturn:
        recorder.write("exit", code=status)
        real_exit(status)

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        reaped, status = _real_waitpid(pid, options)
        if reaped:
            recorder.write("reaped", child=reaped, status=status)
        return reaped, status

    def register_finished() -> None:
        atexit.register(finished)

    # Exit handlers run in reverse order of registration. One that is registered after the script and its threads have
    # ended runs first, before other handlers (one may abort) that belong to the interpreter's shutdown. Without
    # `_register_atexit` (Python 3.8), the handler runs among the last.
    getattr(threading, "_register_atexit", lambda act: act())(register_finished)
    sys.exit = sys_exit
    os._exit = exit_now
    os.waitpid = waitpid


def record_interrupts(recorder: ProcessRecorder) -> None:
    """Record SIGINT before KeyboardInterrupt is raised: a library may catch it, and the script continues.

    Lightning did so until 2.1. `signal.default_int_handler` is replaced too, since `asyncio` compares with it.
    """
    real = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not real:  # such as SIG_IGN
        return

    def default_int_handler(number: int, frame: Any) -> Any:
        recorder.write("interrupted", signal="SIGINT")
        return real(number, frame)

    signal.default_int_handler = default_int_handler
    signal.signal(signal.SIGINT, default_int_handler)


def record_sigterm(recorder: ProcessRecorder, module: Any) -> None:
    """Record SIGTERM during a Lightning fit, which ends the script with SystemExit(0).

    Args:
        recorder: receives the event.
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


def record_process_groups(recorder: ProcessRecorder, module: Any) -> None:
    """Record the process groups that this process joins, with the timeouts that the script passes.

    Args:
        recorder: receives the events.
        module: `torch.distributed.distributed_c10d`.
    """

    def joined(timeout: float | None) -> None:
        recorder.write("joined", rank=module.get_rank(), world_size=module.get_world_size(), timeout=timeout)

    _after(module, "init_process_group", joined)
    _after(module, "new_group", lambda timeout: recorder.write("group", timeout=timeout))


def _after(module: Any, name: str, act: Callable[[float | None], None]) -> None:
    """Call `act` after each call of a function of `distributed_c10d`, with its argument `timeout` in seconds."""
    import inspect  # torch imports it anyway; processes without torch start faster without it

    original = getattr(module, name)
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        timeout: Any = parameters.bind(*args, **options).arguments.get("timeout")
        # torch also accepts a number of seconds.
        act(timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout)
        return result

    # In both modules; if torch.distributed is not imported yet, it will import the replacement.
    for namespace in (module, sys.modules.get("torch.distributed")):
        if getattr(namespace, name, None) is original:
            setattr(namespace, name, call)


class ExceptionRecorder(Protocol):
    """Receives the exception that ends a process."""

    raised: bool

    def write(self, event: str, **details: Any) -> None:
        """Record an event."""

    def exception(self, error: BaseException, where: str) -> None:
        """Record an exception."""


def record_multiprocessing(recorder: ProcessRecorder, module: Any) -> None:
    """Record the exits of `multiprocessing` processes, and end a spawned rank as soon as it has finished."""
    record_processes(recorder, module)
    bootstrap = module.BaseProcess._bootstrap

    def bootstrap_and_exit(self: Any, *arguments: Any, **options: Any) -> Any:
        status = bootstrap(self, *arguments, **options)
        # The rank has finished and cleaned up. During interpreter shutdown, Gloo's threads sometimes abort (1 of 160
        # runs on torch 2.13), which the launcher would report as a failure of the rank.
        if status == 0 and _is_spawned_rank(self):
            real_exit(status)
        return status

    module.BaseProcess._bootstrap = bootstrap_and_exit


def record_processes(recorder: ExceptionRecorder, module: Any) -> None:
    """Record the exits of `multiprocessing` processes.

    Args:
        recorder: receives the events.
        module: `multiprocessing.process`.
    """
    run = module.BaseProcess.run

    def run_and_record(self: Any) -> None:
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

    module.BaseProcess.run = run_and_record


def _is_spawned_rank(process: Any) -> bool:
    return getattr(getattr(process, "_target", None), "__module__", None) == "torch.multiprocessing.spawn"
