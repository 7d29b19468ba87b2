"""A server that has imported the heavy libraries once and forks the ranks of each cell.

    python -c 'from repros_inside import warm; warm.main()' MODULE [MODULE ...]

It talks JSON lines over stdin and stdout. The engine asks `{"id", "argv", "cwd", "environ", "ranks", "log"}`; the
server answers `{"id", "pid"}` when the cell's leader runs and `{"id", "status"}` (a wait status) when it has ended.
`{"ready": seconds}` comes first, once everything is imported; `{"id", "import"}` asks for further modules and is
answered by `{"id", "imported"}`. At the end of stdin, which the death of the engine brings about too, it ends every
cell and itself.

    server ── leader (a session of its own, plays torchrun's agent) ── rank 0, rank 1, ...

Ranks find torchrun's environment variables, run the script as `__main__` and leave through the interpreter's exit
handlers. The leader is a child subreaper: what a rank leaves behind, a daemon of a double fork too, becomes the
leader's child and is ended by it; the server is one for a leader that is killed. CUDA is never initialised here,
since it does not survive a fork. By the parent-death signal a leader does not outlive its server, nor a rank its
leader.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable, Container
from typing import Any, NoReturn

from . import hook

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

STACKS_PATIENCE = 0.5
"""Seconds that ranks get to write their stacks before they are ended."""


def main() -> None:
    """Import the modules that the command line names, then serve until stdin ends."""
    started = time.monotonic()
    requests, answers = _private_pipes()
    _become_subreaper()
    _import(sys.argv[1:])
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    server = _Server(answers, (requests, answers, wake, woken))
    server.say({"ready": round(time.monotonic() - started, 3)})
    server.serve(requests, wake)


def _import(names: list[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            # The script will meet the same error, where it is seen and judged.
            traceback.print_exc()


class _Server:
    """The running leaders and the way back to the engine."""

    def __init__(self, answers: int, private: tuple[int, ...]) -> None:
        self.answers = answers
        self.private = private
        self.leaders: dict[int, int] = {}

    def say(self, answer: dict[str, Any]) -> None:
        """Send one answer."""
        os.write(self.answers, (json.dumps(answer) + "\n").encode())

    def serve(self, requests: int, wake: int) -> None:
        """Start a leader for each request and report each that ended, until the requests end."""
        pending = b""
        while True:
            readable, _, _ = select.select([requests, wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
                self.reap()
            if requests not in readable:
                continue
            chunk = os.read(requests, 1 << 16)
            if not chunk:
                break
            pending += chunk
            *lines, pending = pending.split(b"\n")
            for line in lines:
                request = json.loads(line)
                if "import" in request:
                    _import(request["import"])
                    self.say({"id": request["id"], "imported": len(request["import"])})
                else:
                    self.start(request)
        for pid in self.leaders:
            _kill_session(pid)
        _kill_children()

    def start(self, request: dict[str, Any]) -> None:
        """Fork the leader of a cell."""
        pid = os.fork()
        if pid == 0:
            for descriptor in self.private:
                os.close(descriptor)
            _run_and_leave(functools.partial(_lead, request))
        self.leaders[pid] = request["id"]
        self.say({"id": request["id"], "pid": pid})

    def reap(self) -> None:
        """Report the leaders that ended; end the orphans that one of them may have left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            if pid in self.leaders:
                id_ = self.leaders.pop(pid)
                # First, as the engine takes the answer for the end of the cell.
                _kill_children(but=self.leaders)
                self.say({"id": id_, "status": status})
        _kill_children(but=self.leaders)


def _lead(request: dict[str, Any]) -> int:
    """Be the leader of one cell: fork its ranks, wait for them, end what they leave behind."""
    os.setsid()
    _die_with_the_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _become_subreaper()
    os.environ.clear()
    os.environ.update(request["environ"])
    os.chdir(request["cwd"])
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    recorder = hook.install(os.environ["REPROS_CELL"], role="leader")
    ranks: dict[int, int] = {}
    for rank in range(request["ranks"]):
        pid = os.fork()
        if pid == 0:
            _run_and_leave(functools.partial(_be_rank, recorder, rank, request))
        ranks[pid] = rank
    late = _wait_for(ranks)
    for pid in late:
        recorder.write("stopped", child=pid)
        _kill(pid, hook.STACKS_SIGNAL)
    if late:
        time.sleep(STACKS_PATIENCE)
    _kill_children()
    return 0


def _wait_for(ranks: dict[int, int]) -> list[int]:
    """Wait for all ranks; return those that still run when one has failed and the others had their while to notice."""
    until: float | None = None
    while ranks and (until is None or time.monotonic() < until):
        # Orphans that became ours end here too. A blocking wait would not see the end of the others' while.
        pid, status = os.waitpid(-1, 0 if until is None else os.WNOHANG)
        if pid == 0:
            time.sleep(0.02)
        elif ranks.pop(pid, None) is not None and status != 0 and until is None:
            until = time.monotonic() + hook.RANK_GRACE
    return list(ranks)


def _be_rank(recorder: hook.Recorder, rank: int, request: dict[str, Any]) -> int:
    """Run the script as this rank; return the exit code."""
    _die_with_the_parent()
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
    hook.own_log(os.path.join(recorder.folder, "log.txt"))
    _forget_the_server(rank)
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


def _forget_the_server(rank: int) -> None:
    """Undo what belongs to the process that did the imports rather than to this one."""
    tempfile.tempdir = None
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    # Lightning reads the rank from the environment when it is imported, which was before there was one.
    for name in ("lightning_utilities.core.rank_zero", "lightning.fabric.utilities.rank_zero"):
        rank_zero = getattr(sys.modules.get(name), "rank_zero_only", None)
        if rank_zero is not None:
            rank_zero.rank = rank


def _run_and_leave(act: Callable[[], int]) -> NoReturn:
    """Run what a forked process is for and end it as the interpreter would, without unwinding into the server."""
    code: Any = 1
    try:
        code = act()
    except SystemExit as error:
        code = error.code
        if code is not None and not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException as error:
        # As the interpreter does: the hook finds it there when the script has an excepthook of its own.
        sys.last_value = error
        sys.excepthook(type(error), error, error.__traceback__)
    try:
        # What Py_Finalize does before it takes the modules apart, which forked native threads might not survive.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        hook.real_exit(code or 0)


def _private_pipes() -> tuple[int, int]:
    """Take stdin and stdout for the conversation with the engine; whoever prints prints to stderr."""
    requests, answers = os.dup(0), os.dup(1)
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _become_subreaper() -> None:
    # Linux only; elsewhere an orphan goes to init and is found by its session alone.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _die_with_the_parent() -> None:
    # Linux only; elsewhere the engine finds what is left by its session.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _children() -> list[int]:
    """Return the pids of this process's living children, adopted ones too; zombies are collected on the way."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.extend(int(word) for word in file.read().split())
        except OSError:
            continue
    return found


def _kill_children(but: Container[int] = ()) -> None:
    """End every child but some, and what they leave behind as it becomes ours, until there is none."""
    for _ in range(200):
        children = [pid for pid in _children() if pid not in but]
        if not children:
            return
        for pid in children:
            _kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _kill_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        _kill(pid)
