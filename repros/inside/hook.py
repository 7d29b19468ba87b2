"""Writes down what each process of a cell does, from inside that process.

Every process gets a folder `CELL/processes/PID/` with

- `events.jsonl`, one object a line, written with a single `write` so that a killed process leaves whole lines:
  `start` (role, rank), `raised` (the exception chain), `finished` (the script ran to its end), `exit` (`os._exit`
  was called), `reaped` (the wait status of a child), `stopped` (a child that was ended on the engine's behalf);
  each with `time`, seconds of `time.monotonic`, which on Linux and macOS all processes of a machine share;
- `stacks.txt`, where faulthandler writes every thread's stack at a fatal signal and when the engine asks for it;
- `log.txt`, stdout and stderr of a process other than the main one, whose log the engine opens itself.

How an exception is seen depends on how the process was made. The main process and re-launched ranks:
`sys.excepthook`, and `sys.last_value` for a script that set its own. Processes of `multiprocessing` (spawned and
forked ranks): their `run` is wrapped, since `multiprocessing` and torch's `spawn` catch the exception, print it and
leave with an exit code; torch leaves with `sys.exit(1)` inside the `except`, so the chain hangs below that SystemExit.
`os.waitpid` is wrapped as only a parent learns that its child died of a signal.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import json
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import Any, NoReturn

from .chain import told
from .sim.import_hooks import when_imported

STACKS_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR2
"""The engine sends it to ask for stacks; a real-time signal, which no training library uses."""

RANK_GRACE = 15.0
"""Seconds that the other ranks get to end by themselves once one has failed: they have a peer's death to notice."""

real_exit = os._exit
_real_waitpid = os.waitpid


class Recorder:
    """The open files of this process; made anew in a forked child, which has another pid."""

    def __init__(self, cell: str) -> None:
        self.cell = cell
        self.pid: int | None = None
        self.raised = False

    def begin(self, role: str, rank: int | None) -> None:
        """Open this process's files and write its `start`."""
        self.pid = os.getpid()
        self.raised = False
        folder = os.path.join(self.cell, "processes", str(self.pid))
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.events = os.open(os.path.join(folder, "events.jsonl"), flags, 0o600)
        self.stacks = open(os.path.join(folder, "stacks.txt"), "a")  # noqa: SIM115 - open as long as the process lives
        faulthandler.enable(self.stacks, all_threads=True)
        faulthandler.register(STACKS_SIGNAL, self.stacks, all_threads=True, chain=False)
        self.write("start", ppid=os.getppid(), role=role, rank=rank)

    def write(self, event: str, **details: Any) -> None:
        """Append one event; a recorder must never be what makes a script fail."""
        try:
            if os.getpid() != self.pid:
                self.begin("helper", None)
            # A line break first too: a line that somebody else left open must not swallow this one.
            line = f"\n{json.dumps(dict(details, event=event, time=time.monotonic()))}\n"
            os.write(self.events, line.encode("utf-8", "backslashreplace"))
        except Exception:
            pass

    def exception(self, error: BaseException, where: str) -> None:
        """Write the chain of an exception that ends this process."""
        self.raised = True
        try:
            chain = told(error)
        except Exception:  # a hostile exception must not be taken for none
            chain = []
        self.write("raised", where=where, rank=_rank(), chain=chain)


def install(cell: str, role: str = "main") -> Recorder:
    """Start recording this process below the folder `cell`; the first one of the cell has that role.

    It reads and sets for its children: `REPROS_LOG`, the file that stdout and stderr of a new process go to, and
    `REPROS_HOOKED`, set as soon as one process of the cell records. Returns the recorder.
    """
    is_main = "REPROS_HOOKED" not in os.environ
    os.environ["REPROS_HOOKED"] = "1"
    recorder = Recorder(cell)
    if is_main:
        recorder.begin(role, _launched_rank())
    else:
        rank = _launched_rank() if _is_script() else None
        recorder.begin("helper" if rank is None else "rank", rank)
        own_log(os.path.join(recorder.folder, "log.txt"))
    _watch_exceptions(recorder)
    _watch_exits(recorder)
    when_imported("multiprocessing.process", lambda module: _watch_multiprocessing(recorder, module))
    when_imported("torch.distributed.distributed_c10d", lambda module: _watch_groups(recorder, module))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: recorder.begin("helper", None))
    return recorder


def _is_script() -> bool:
    """Whether this process runs the cell's script, as re-launched ranks do; a library's helpers run something else."""
    argv = getattr(sys, "orig_argv", None) or _command_line()
    return os.environ.get("REPROS_SCRIPT") in map(os.path.realpath, argv[1:3])


def _command_line() -> list[str]:
    # Before Python 3.10 nothing in `sys` holds the command line this early.
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return sys.argv


def _launched_rank() -> int | None:
    """Return the rank that a launcher gave this process through its environment, if any."""
    for name in ("RANK", "LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def _rank() -> int | None:
    """Return this process's rank in the default process group, if it is in one now."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        return distributed.get_rank() if distributed.is_initialized() else _launched_rank()
    except Exception:
        return _launched_rank()


def own_log(path: str) -> None:
    """Send stdout and stderr to a log of this process's own, unless somebody captures them."""
    inherited = os.environ.get("REPROS_LOG")
    if inherited is None:
        return
    try:
        shared = os.stat(inherited)
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:  # the shared log is gone, or there is no room: it stays as it is
        return
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # closed
            if os.path.samestat(os.fstat(stream), shared):
                os.dup2(log, stream)
    os.close(log)
    os.environ["REPROS_LOG"] = path


def _watch_exceptions(recorder: Recorder) -> None:
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        recorder.exception(error, "excepthook")
        previous(kind, error, trace)

    sys.excepthook = excepthook


def _watch_exits(recorder: Recorder) -> None:
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
            recorder.write("finished", rank=_rank(), code=asked_for)

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

    # Exit handlers run in reverse, so one registered at the last moment runs first: the script has ended, its
    # threads too, and whatever another handler does (an abort, say) is the interpreter's way out. Without the
    # private place it runs among the last.
    getattr(threading, "_register_atexit", lambda act: act())(last_of_all)
    sys.exit = sys_exit
    os._exit = exit_now
    os.waitpid = waitpid


def _watch_groups(recorder: Recorder, module: Any) -> None:
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args: Any, **options: Any) -> None:
        original(*args, **options)
        recorder.write("joined", rank=module.get_rank(), world_size=module.get_world_size())

    # By both names; where torch.distributed is not there yet, it takes it from this module.
    for place in (module, sys.modules.get("torch.distributed")):
        if getattr(place, "init_process_group", None) is original:
            setattr(place, "init_process_group", init_process_group)  # noqa: B010 - what mypy takes for a module


def _watch_multiprocessing(recorder: Recorder, module: Any) -> None:
    run, bootstrap = module.BaseProcess.run, module.BaseProcess._bootstrap

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

    def watched_bootstrap(self: Any, *arguments: Any, **options: Any) -> Any:
        status = bootstrap(self, *arguments, **options)
        # The rank is done and has cleaned up. On the interpreter's way out Gloo's threads abort now and then (1 run of
        # 160 on torch 2.13), which its launcher would take for the rank's failure.
        if status == 0 and _is_spawned_rank(self):
            real_exit(status)
        return status

    module.BaseProcess.run, module.BaseProcess._bootstrap = watched_run, watched_bootstrap


def _is_spawned_rank(process: Any) -> bool:
    return getattr(getattr(process, "_target", None), "__module__", None) == "torch.multiprocessing.spawn"
