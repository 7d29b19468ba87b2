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

import functools
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any

from .leader import lead, run_and_leave
from .processes import become_subreaper, kill_children, kill_session


def main() -> None:
    """Import the modules that the command line names, then serve until stdin ends."""
    started = time.monotonic()
    requests, answers = _private_pipes()
    become_subreaper()
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
            kill_session(pid)
        kill_children()

    def start(self, request: dict[str, Any]) -> None:
        """Fork the leader of a cell."""
        pid = os.fork()
        if pid == 0:
            for descriptor in self.private:
                os.close(descriptor)
            run_and_leave(functools.partial(lead, request))
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
                kill_children(but=self.leaders)
                self.say({"id": id_, "status": status})
        kill_children(but=self.leaders)


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
