"""The command line of bubblewrap, which makes the namespaces and the file system of a script where it is installed.

It is in every distribution, and may make user namespaces on systems that allow them to few programs: with an AppArmor
profile of its own, or setuid. A process that a warm server has forked cannot enter its namespaces.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from repros.scripts.try_.inside.root import DEVICES
from repros.scripts.try_.paths import Paths

_ALONE = frozenset(map(Path, ("/proc", "/dev")))
"""Folders that bubblewrap makes itself."""
_ITS_DEVICES = frozenset({"null", "zero", "full", "random", "urandom", "tty"})


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap; None if it is not installed."""
    return shutil.which("bwrap")


def build_command(program: str, paths: Paths, shared_memory: int, *, network: bool) -> list[str]:
    """Return bubblewrap's command line up to the command that it starts.

    Args:
        program: the path of bubblewrap.
        paths: what the script sees.
        shared_memory: bytes of `/dev/shm`.
        network: whether the script has no network.
    """
    words = [program, "--unshare-user", "--unshare-ipc", "--unshare-pid", *(["--unshare-net"] if network else [])]
    words += ["--as-pid-1", "--cap-drop", "ALL"]
    binds = {**dict.fromkeys(paths.readable, "--ro-bind"), **dict.fromkeys(paths.writable, "--bind")}
    for path, bind in sorted(binds.items()):
        if path not in _ALONE:
            words += [bind, str(path), str(path)]
    for path in paths.hidden:
        hides = ("--tmpfs", str(path), "--remount-ro") if path.is_dir() else ("--ro-bind", "/dev/null")
        words += [*hides, str(path)]
    for path, target in paths.links.items():
        words += ["--symlink", str(target), str(path)]
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    for pattern in DEVICES:
        devices = (device for device in sorted(Path("/dev").glob(pattern)) if device.name not in _ITS_DEVICES)
        words += [word for device in devices for word in ("--dev-bind", str(device), str(device))]
    words += ["--perms", "1777", "--size", str(shared_memory), "--tmpfs", "/dev/shm"]  # noqa: S108 - a new one
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]
