"""The sandbox: a program that drops the rights that an untrusted script does not need, and then executes the script.

    python -I -S sandbox.py SETTINGS COMMAND [ARGS]...
    python -I -S sandbox.py SETTINGS

SETTINGS is a JSON object, the fields of :class:`repros.scripts.try_.sandbox.SandboxSettings`. The processes that the
command starts inherit the sandbox. Without a command the program prints a JSON object with the isolations that this
system cannot provide, and why.

- Limits (`setrlimit`) on the memory of each process, on the size of each file, and no core dumps.
- No network: a network namespace of its own (`unshare`), with its loopback device up, over which the ranks still talk.
  With a user namespace, so that this needs no rights and leaves root none.
- Restricted files: it can read the system's folders and its own, and change only its own (Landlock, Linux 5.13 and
  newer). Landlock also hides the memory and the environment variables of other processes, and from Linux 6.12 on blocks
  signals to them.

Not restricted: sockets that other programs have in the file system (that of Docker, for example), processor time, the
number of processes, and system calls (there is no seccomp filter).

If an isolation that SETTINGS names cannot be provided, the program ends with `REFUSED`: nothing runs with less.

The program is this module. It uses the standard library only and starts in 20 ms from any interpreter.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

REFUSED = 125
"""The exit code, as of `env` and `timeout`, if an isolation cannot be provided."""

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h
_SELF = Path("/proc/self")
_PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h

# The same numbers on every processor.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1  # linux/landlock.h
_READ = 0b1101  # execute, read a file, read a folder
_WRITE = 0b1111111110010  # write, remove and make entries of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_OF_FILES = 0b111 | _TRUNCATE
"""The rights that a rule for a file may give, unlike one for a folder."""
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_SINCE_REFER, _SINCE_TRUNCATE, _SINCE_SCOPES = 2, 3, 6
"""Versions of Landlock."""


def limit(settings: dict[str, Any]) -> None:
    """Set the limits of this process and of those that it starts; a lower limit stays."""
    wanted = {
        resource.RLIMIT_DATA: settings["memory"],
        resource.RLIMIT_FSIZE: settings["file_size"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, size in wanted.items():
        _, hard = resource.getrlimit(kind)
        most = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(kind, (most, most))


def isolate_network(_: dict[str, Any]) -> None:
    """Enter a network namespace that has only a loopback device.

    Raises:
        OSError: the system does not allow it.
    """
    _refuse_other_systems()
    user, group = os.getuid(), os.getgid()
    if _libc().unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        (_SELF / "setgroups").write_text("deny", "ascii")
        (_SELF / "uid_map").write_text(f"{user} {user} 1", "ascii")
        (_SELF / "gid_map").write_text(f"{group} {group} 1", "ascii")
    else:  # root, where user namespaces are switched off
        _check(_libc().unshare(_CLONE_NEWNET))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(device, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(device, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def isolate_files(settings: dict[str, Any]) -> None:
    """Restrict the file system to the folders that may be read, and those that may be changed.

    Raises:
        OSError: the system lacks Landlock, or it is switched off.
    """
    _refuse_other_systems()
    version = _check(_libc().syscall(_CREATE_RULESET, None, 0, _VERSION))
    handled = _READ | _WRITE
    handled |= _REFER if version >= _SINCE_REFER else 0
    handled |= _TRUNCATE if version >= _SINCE_TRUNCATE else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SINCE_SCOPES else 0
    attributes = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    rules = _check(_libc().syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    _allow(rules, settings["readable"], handled & _READ)
    _allow(rules, settings["writable"], handled)
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc().syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this system
            continue
        allowed = rights if Path(path).is_dir() else rights & _OF_FILES
        beneath = struct.pack("=Qi", allowed, opened)
        _check(_libc().syscall(_ADD_RULE, rules, _PATH_BENEATH, beneath, 0))
        os.close(opened)


def _refuse_other_systems() -> None:
    if sys.platform != "linux":
        raise OSError(f"only Linux can, and this is {sys.platform}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


ISOLATIONS: dict[str, Callable[[dict[str, Any]], None]] = {"network": isolate_network, "files": isolate_files}
"""By their names in the settings' `isolate`, in the order in which they are applied."""


def isolate(settings: dict[str, Any]) -> dict[str, str]:
    """Apply the isolations that the settings name; return the reason for each that cannot be provided."""
    problems = {}
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


def main(settings: dict[str, Any], command: list[str]) -> int:
    """Enter the sandbox and execute the command; return only if that is impossible."""
    problems = isolate(settings)
    if not command:
        sys.stdout.write(json.dumps(problems))
        return 0
    if problems:
        sys.stderr.write(refusal(problems))
        return REFUSED
    limit(settings)
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - executing the command is the purpose
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
