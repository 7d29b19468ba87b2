"""The first process of a PID namespace: it starts the command, reaps what is left to it, and watches memory.

The process that was started outside waits for it, and ends as the command does. Two lines go to it through a pipe: that
the command has started, and its wait status; or why there is no command.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repros.scripts.try_.inside import kernel, memory

REFUSED = 125
"""The exit code, as of `env` and `timeout`, if an isolation cannot be provided."""
MAIN_PID = 2
"""The pid of the command in its own PID namespace, in which 1 is the init."""

_STARTED = "started"
_MEANT_FOR_THE_COMMAND = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that the command gets, too."""


def start_and_wait(begin: Callable[[int], None], settings: dict[str, Any]) -> None:
    """Fork; return in the command's process only, while this one waits for it and ends alike.

    Args:
        begin: called in the new process with the pipe for the answer; it returns in the command's process only.
        settings: those of the sandbox.

    Raises:
        OSError: `begin` did not start the command.
    """
    answers, answer = os.pipe()
    if os.fork() != 0:
        os.close(answer)
        _wait(answers, settings)
        return
    try:
        os.close(answers)
        begin(answer)
    except BaseException as error:
        os.write(answer, f"{error}".encode())
        os._exit(REFUSED)


def _wait(answers: int, settings: dict[str, Any]) -> None:
    """Wait for the command's wait status and end alike, or raise why there is no command."""
    for number in _MEANT_FOR_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(answers, errors="replace") as lines:
        first = lines.readline().strip()
        if first != _STARTED:
            raise OSError(first or "it ended before it had started the command")
        text = lines.readline().strip()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory.was_exceeded(settings):
        _say("memory is larger than --memory allows, or than this machine has")
    code = os.waitstatus_to_exitcode(int(text)) if text else -signal.SIGKILL
    if code < 0:
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def fork_main(answer: int, settings: dict[str, Any]) -> None:
    """Fork the command's process and return there; in this one, reap processes until none is left, and end.

    Args:
        answer: where to write the command's wait status.
        settings: those of the sandbox.
    """
    kernel.libc().prctl(kernel.SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    main = os.fork()
    if main == 0:
        os.close(answer)
        os.setpgid(0, 0)  # as the first process of a session has
        return
    for number in _MEANT_FOR_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    os.write(answer, f"{_STARTED}\n".encode())
    threading.Thread(target=memory.supervise, args=(settings, _kill_all), daemon=True).start()
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == main:
            # What it has left may go on, as without a namespace, until the engine ends it.
            kernel.libc().prctl(kernel.SET_PDEATHSIG, 0, 0, 0, 0)
            os.write(answer, str(status).encode())
            os.close(answer)


def _kill_all(what: str) -> None:
    _say(f"{what} is larger than --memory allows")
    os.kill(-1, signal.SIGKILL)


def _say(reason: str) -> None:
    sys.stderr.write(f"repros: ended, since its {reason}\n")
    sys.stderr.flush()


def open_group(settings: dict[str, Any]) -> int | None:
    """Open the list of a cgroup's processes; None without a cgroup."""
    group = settings["group"]
    return os.open(Path(group, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC) if group else None


def join_group(opened: int | None) -> None:
    """Move this process to the cgroup that :func:`open_group` opened.

    Raises:
        OSError: the system does not allow it.
    """
    if opened is not None:
        os.write(opened, b"0")
        os.close(opened)
