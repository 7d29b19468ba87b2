"""Namespaces by the kernel's own calls: network, mounts and IPC, and processes.

All are made within a user namespace, so that this needs no rights and leaves root none. A process that a warm server
has forked can enter them, unlike those of bubblewrap, which is a program.
"""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import struct
from pathlib import Path
from typing import Any

from repros.scripts.try_.inside import init, kernel, root

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h
_SELF = Path("/proc/self")
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_entered: list[int] = []
"""The user of the user namespace that this process has entered; empty before."""


def isolate_network(_: dict[str, Any]) -> None:
    """Enter a network namespace that has only a loopback device.

    Raises:
        OSError: the system does not allow it.
    """
    enter(kernel.NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(device, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(device, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def isolate_system(settings: dict[str, Any]) -> None:
    """Enter a mount namespace with a file system of its own, and an IPC namespace.

    Raises:
        OSError: the system does not allow it.
    """
    enter(kernel.NEWNS | kernel.NEWIPC)
    join_new_keyring()
    root.build_root(settings)


def join_new_keyring() -> None:
    """Replace the session keyring by an empty one."""
    number = _KEYCTL.get(platform.machine())
    if number is not None:  # a kernel without keyrings has no key to hide
        kernel.libc().syscall(number, _JOIN_SESSION_KEYRING, None)


def isolate_processes(settings: dict[str, Any]) -> None:
    """Enter a PID namespace; return in its second process only, while this one waits for it and ends alike.

    Raises:
        OSError: the system does not allow it, or hides a part of `/proc`, as many containers do.
    """
    enter(kernel.NEWNS | kernel.NEWPID)

    def begin(answer: int) -> None:
        init.join_group(settings["opened_group"])
        kernel.mount(None, "/", None, kernel.RECURSIVE | kernel.PRIVATE)
        kernel.mount("proc", "/proc", "proc", kernel.READ_ONLY | kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
        init.fork_main(answer, settings)

    init.start_and_wait(begin, settings)


def enter(kinds: int) -> None:
    """Enter namespaces, the first time with a user namespace, in which this needs no rights.

    Raises:
        OSError: the system does not allow it.
    """
    kernel.refuse_other_systems()
    user, group = os.getuid(), os.getgid()
    if not _entered and kernel.libc().unshare(kernel.NEWUSER | kinds) == 0:
        (_SELF / "setgroups").write_text("deny", "ascii")
        (_SELF / "uid_map").write_text(f"{user} {user} 1", "ascii")
        (_SELF / "gid_map").write_text(f"{group} {group} 1", "ascii")
        _entered.append(user)
    else:  # in its user namespace; or root, where they are switched off
        kernel.check(kernel.libc().unshare(kinds))
