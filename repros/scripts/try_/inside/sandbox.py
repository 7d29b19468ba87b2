"""The sandbox: a program that drops the rights that an untrusted script does not need, and then executes the script.

    python -I -S -c PROGRAM SETTINGS COMMAND [ARGS]...
    python -I -S -c PROGRAM SETTINGS

PROGRAM calls :func:`start`; SETTINGS is a JSON object, the fields of
:class:`repros.scripts.try_.sandbox.SandboxSettings`. The processes that the command starts inherit the sandbox. Without
a command the program prints a JSON object with the isolations that this system cannot provide, and why.

- Limits (`setrlimit`) on the private memory of each process, on the size of each file, and no core dumps. The init of
  the namespace below kills all when their shared memory is larger, or their files in memory (`memfd_create`), and
  `/dev/shm` has a size. A cgroup, where there is one, limits all memory of all of them.
- No network: a network namespace of its own, with its loopback device up, over which the ranks still talk. With a user
  namespace, so that this needs no rights and leaves root none.
- A file system and memory of its own (:mod:`repros.scripts.try_.inside.root`): only the folders that it needs, all but
  its own read-only; devices without disks and terminals; its own `/dev/shm`; an IPC namespace and a session keyring, so
  that it sees no shared memory, semaphore or key of other programs.
- Processes of its own: a PID namespace with a `/proc` of its own, so that it sees, signals, limits and slows its own
  processes alone, and all of them die with their init. The process that was started and the init run this program; the
  second process of the namespace is the command (:data:`repros.scripts.try_.inside.init.MAIN_PID`).
- Restricted files: it can read the system's folders and its own, and change only its own (Landlock, Linux 5.13 and
  newer). Landlock also hides the memory and the environment variables of other processes, and from Linux 6.12 on blocks
  signals to them.
- No capabilities, and restricted system calls (seccomp): none that mounts, traces, makes a namespace, reads another
  process, loads code into the kernel, sets the clock, asks for a key, or limits another process; no socket to the host
  of a virtual machine; no io_uring, whose operations a filter does not see.

Network, file system and processes are made by bubblewrap if the settings have its command line, else by the kernel's
calls (:mod:`repros.scripts.try_.inside.namespaces`). Not restricted: processor time and the number of processes.

If an isolation that SETTINGS names cannot be provided, the program ends with `REFUSED`: nothing runs with less.

The program uses the standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repros.scripts.try_.inside import calls, files, init, kernel, namespaces

PROGRAM = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[4])!r}); "
    "from repros.scripts.try_.inside import sandbox; sandbox.start()"
)
"""Runs :func:`start` from any interpreter, as its argument `-c`."""

ISOLATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "network": namespaces.isolate_network,
    "system": namespaces.isolate_system,
    "processes": namespaces.isolate_processes,
    "files": files.isolate_files,
    "calls": calls.filter_calls,
}
"""By their names in the settings' `isolate`, in the order in which they are applied."""
_MOST_OPEN = 4096
"""Files that a process has open: the kernel keeps memory for each socket that no limit of a process counts."""
OF_NAMESPACES = ("network", "system", "processes")
"""Those that bubblewrap can make."""


def limit(settings: dict[str, Any]) -> None:
    """Set the limits of this process and of those that it starts; a lower limit stays."""
    wanted = {
        resource.RLIMIT_DATA: settings["memory"],
        resource.RLIMIT_FSIZE: settings["file_size"],
        resource.RLIMIT_NOFILE: _MOST_OPEN,
        resource.RLIMIT_CORE: 0,
    }
    for kind, size in wanted.items():
        limits = resource.getrlimit(kind)
        soft, hard = (size if one == resource.RLIM_INFINITY else min(size, one) for one in limits)
        # The soft limit of open files has another purpose, and each process may raise it.
        resource.setrlimit(kind, (soft if kind == resource.RLIMIT_NOFILE else hard, hard))


def isolate(settings: dict[str, Any]) -> dict[str, str]:
    """Apply the isolations that the settings name; return the reason for each that cannot be provided."""
    problems = {}
    settings = {**settings, "opened_group": init.open_group(settings)}  # before its file system is read-only
    if "processes" not in settings["isolate"]:
        init.join_group(settings["opened_group"])
    for name, apply in ISOLATIONS.items():
        if name in settings["isolate"]:
            try:
                apply(settings)
            except (OSError, AttributeError) as error:  # a C library without the call
                problems[name] = str(error)
    return problems


def refusal(problems: dict[str, str]) -> str:
    """Return the line that says why a script is not run."""
    return f"repros: the script is not run, since the sandbox cannot be built: {json.dumps(problems)}\n"


def _start_with_bubblewrap(settings: dict[str, Any], command: list[str]) -> None:
    """Run this program in the namespaces of bubblewrap, as their first process; end as the command does.

    Raises:
        OSError: bubblewrap cannot make them.
    """

    def begin(answer: int) -> None:
        init.join_group(init.open_group(settings))
        kernel.libc().prctl(kernel.SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.set_inheritable(answer, True)
        left = [name for name in settings["isolate"] if name not in OF_NAMESPACES]
        within = {**settings, "bubblewrap": [], "isolate": left, "group": None, "answer": answer}
        this_program = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
        words = [*settings["bubblewrap"], "--", *this_program, json.dumps(within), *command]
        os.execv(words[0], words)  # noqa: S606 - executing it is the purpose

    init.start_and_wait(begin, settings)


def _begin_as_init(settings: dict[str, Any]) -> None:
    """Return in the command's process, the second one in the namespaces that bubblewrap has made."""
    os.environ.pop("PWD", None)  # bubblewrap sets it
    namespaces.join_new_keyring()
    init.fork_main(settings["answer"], settings)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def main(settings: dict[str, Any], command: list[str]) -> int:
    """Enter the sandbox and execute the command; return only if that is impossible."""
    if settings["bubblewrap"]:
        try:
            _start_with_bubblewrap(settings, command)
        except OSError as error:
            sys.stderr.write(refusal(dict.fromkeys(settings["isolate"], f"bubblewrap: {error}")))
        return init.REFUSED
    if "answer" in settings:
        _begin_as_init(settings)
    problems = isolate(settings)
    if not command:
        sys.stdout.write(json.dumps(problems))
        return 0
    if problems:
        sys.stderr.write(refusal(problems))
        return init.REFUSED
    limit(settings)
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - executing the command is the purpose
    raise AssertionError


def start() -> None:
    """Run the program with the arguments of this process."""
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
