"""Calls of the kernel that Python's library lacks, or lacks in the oldest Python of a stack."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

SET_PDEATHSIG, SET_SECCOMP, CAPBSET_DROP, SET_NO_NEW_PRIVS = 1, 22, 24, 38
"""The calls of `prctl` (linux/prctl.h)."""
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
"""The namespaces (linux/sched.h)."""
READ_ONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
"""Attributes of a mount; `mount` and `mount_setattr` have the same numbers (linux/mount.h)."""
BIND, RECURSIVE, PRIVATE = 1 << 12, 1 << 14, 1 << 18

# The same numbers on every processor.
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000  # linux/fcntl.h
_DETACH = 2  # linux/fs.h: MNT_DETACH
_CAPABILITIES_VERSION = 0x20080522  # linux/capability.h


def refuse_other_systems() -> None:
    """Raise OSError if this is not Linux."""
    if sys.platform != "linux":
        raise OSError(f"only Linux can, and this is {sys.platform}")


def libc() -> ctypes.CDLL:
    """Return the C library."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int) -> int:
    """Return the result of a call.

    Raises:
        OSError: it is negative.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or a file or folder that another has.

    Raises:
        OSError: the kernel refuses it.
    """
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    check(libc().mount(*words, ctypes.c_ulong(flags), data.encode() if data else None))


def set_attributes(path: str, attributes: int, *, below: bool) -> None:
    """Set attributes of a mount, and of all below it (Linux 5.12 and newer).

    Raises:
        OSError: the kernel refuses it, or is older.
    """
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    arguments = (path.encode(), _AT_RECURSIVE if below else 0, wanted, ctypes.c_size_t(len(wanted)))
    check(libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, *arguments))


def move_root(root: str, old: str) -> None:
    """Make the mount at `root` the root of this mount namespace, and put the former one at `old`, below it.

    Raises:
        OSError: the kernel refuses it.
    """
    number = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine)
    if number is None:
        raise OSError(f"the number of pivot_root is unknown on {os.uname().machine}")
    check(libc().syscall(number, root.encode(), old.encode()))
    os.chdir("/")


def unmount(path: str) -> None:
    """Detach a mount with all below it.

    Raises:
        OSError: the kernel refuses it.
    """
    check(libc().umount2(path.encode(), _DETACH))


def drop_capabilities() -> None:
    """Give up all capabilities, those that an `execve` as root would give back, too; do nothing without any.

    Raises:
        OSError: the kernel refuses it.
    """
    header = struct.pack("Ii", _CAPABILITIES_VERSION, 0)
    held = ctypes.create_string_buffer(24)  # effective, permitted and inheritable, each in two words
    check(libc().capget(header, held))
    if not any(held.raw):
        return
    capability = 0
    while libc().prctl(CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    check(libc().capset(header, bytes(24)))
