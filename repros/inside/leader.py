"""The leader of one job, which acts as torchrun's agent, and the ranks that it forks."""

from __future__ import annotations

import atexit
import functools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from typing import Any, NoReturn

from repros.inside import contract
from repros.inside.hook import install
from repros.inside.instrumentation import real_exit
from repros.inside.processes import become_subreaper, die_with_parent, kill, kill_children
from repros.inside.recorder import RANK_GRACE, STACKS_SIGNAL, ProcessRecorder, redirect_output

STACKS_TIMEOUT = 0.5
"""Seconds for ranks to dump their stacks before they are killed."""


def lead(request: dict[str, Any]) -> NoReturn:
    """Lead one job in a session of its own: fork its ranks, wait for them, and kill their remaining children."""
    die_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    become_subreaper()
    os.environ.clear()
    os.environ.update(request["environ"])
    os.chdir(request["cwd"])
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    recorder = install(os.environ[contract.CELL], role="leader")
    ranks: dict[int, int] = {}
    for rank in range(request["ranks"]):
        pid = os.fork()
        if pid == 0:
            run_and_exit(functools.partial(_run_as_rank, recorder, rank, request))
        ranks[pid] = rank
    late = _wait_for(ranks)
    for pid in late:
        recorder.write("stopped", child=pid)
        kill(pid, STACKS_SIGNAL)
    if late:
        time.sleep(STACKS_TIMEOUT)
    kill_children()
    # Without the exit handlers that the server's imports registered: the leader has used no library.
    recorder.write("finished", rank=None, code=0)
    real_exit(0)


def _wait_for(ranks: dict[int, int]) -> list[int]:
    """Wait for all ranks; return the pids of those still running `RANK_GRACE` seconds after one has failed."""
    until: float | None = None
    while ranks and (until is None or time.monotonic() < until):
        # This also reaps adopted orphans. After a rank has failed the wait must not block, or the grace period never
        # ends.
        pid, status = os.waitpid(-1, 0 if until is None else os.WNOHANG)
        if pid == 0:
            time.sleep(0.02)
        elif ranks.pop(pid, None) is not None and status != 0 and until is None:
            until = time.monotonic() + RANK_GRACE
    return list(ranks)


def _run_as_rank(recorder: ProcessRecorder, rank: int, request: dict[str, Any]) -> int:
    """Run the script as one rank; return its exit code."""
    die_with_parent()
    count = request["ranks"]
    if count > 1:
        os.environ.update(
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            GROUP_RANK="0",
            ROLE_RANK=str(rank),
            WORLD_SIZE=str(count),
            LOCAL_WORLD_SIZE=str(count),
            ROLE_WORLD_SIZE=str(count),
            TORCHELASTIC_RUN_ID="repros",
            TORCHELASTIC_RESTART_COUNT="0",
            TORCHELASTIC_MAX_RESTARTS="0",
        )
    recorder.write("start", ppid=os.getppid(), role="rank", rank=rank)
    redirect_output(os.path.join(recorder.folder, "log.txt"))
    _reset_inherited_state(rank)
    sys.argv = list(request["argv"])
    script = sys.argv[0]
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    exec(code, module.__dict__)  # noqa: S102 - what `python script.py` does
    return 0


def _reset_inherited_state(rank: int) -> None:
    """Reset state that this rank inherits from the importing process and must not share."""
    tempfile.tempdir = None
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    # Lightning reads the rank from the environment at import, when it was not set yet.
    for name in ("lightning_utilities.core.rank_zero", "lightning.fabric.utilities.rank_zero"):
        rank_zero = getattr(sys.modules.get(name), "rank_zero_only", None)
        if rank_zero is not None:
            rank_zero.rank = rank


def run_and_exit(act: Callable[[], int]) -> NoReturn:
    """Run the task of a forked process and exit like the interpreter, without unwinding into the server."""
    code: Any = 1
    try:
        code = act()
    except SystemExit as error:
        code = error.code
        if code is not None and not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException as error:
        # As the interpreter does; the hook reads it if the script has set its own excepthook.
        sys.last_value = error
        sys.excepthook(type(error), error, error.__traceback__)
    try:
        # The steps of Py_Finalize before it clears the modules, which native libraries may not survive after a fork.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        real_exit(code or 0)
