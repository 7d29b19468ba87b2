"""A file system of its own: the folders that a script may read or change, at their paths, and nothing else.

Names, sizes and times of other files cannot be asked for, and sockets of other programs, such as Docker's or the
session bus, have no path.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from repros.scripts.try_.inside import kernel

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "nvidia*", "kfd", "dri")
"""Below `/dev`: none has a disk, a terminal of somebody else (`tty` is the process's own) or another's memory."""
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_BASE = "/tmp"  # noqa: S108 - a mount covers it, and nothing is written to it
_OLD, _NEW = Path("/old"), Path("/new")


def build_root(settings: dict[str, Any]) -> None:
    """Build the file system and enter it, in a mount namespace of this process's own.

    Raises:
        OSError: the system does not allow it.
    """
    here = Path.cwd()
    kernel.mount(None, "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("tmpfs", _BASE, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=755,size=16m")
    for folder in (_OLD, _NEW):
        Path(f"{_BASE}{folder}").mkdir()
    kernel.mount(f"{_BASE}{_NEW}", f"{_BASE}{_NEW}", None, kernel.BIND)
    kernel.move_root(_BASE, f"{_BASE}{_OLD}")
    _bind_folders(settings)
    _make_devices(settings["shared_memory"])
    former = _below(_NEW, "/.former")
    former.mkdir()
    kernel.move_root(str(_NEW), str(former))
    kernel.unmount("/.former")
    Path("/.former").rmdir()
    kernel.set_attributes("/", kernel.READ_ONLY, below=False)
    kernel.set_attributes("/dev", kernel.READ_ONLY, below=False)
    os.chdir(here)


def _bind_folders(settings: dict[str, Any]) -> None:
    """Bind what may be read and what may be changed, the outer folders first, and make the links between them."""
    writable = set(settings["writable"])
    for path in sorted({*settings["readable"], *writable} - {"/dev"}):
        source, target = _below(_OLD, settings["replaced"].get(path, path)), _below(_NEW, path)
        if source.exists():
            _make_like(source, target)
            kernel.mount(str(source), str(target), None, kernel.BIND | kernel.RECURSIVE)
            attributes = kernel.NOSUID | kernel.NODEV | (0 if path in writable else kernel.READ_ONLY)
            kernel.set_attributes(str(target), attributes, below=True)
    for path, content in settings["links"].items():
        target = _below(_NEW, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(content)
    _hide(settings["hidden"])


def _hide(paths: list[str]) -> None:
    """Bind an empty file or folder over each of these, which lie in folders that may be read."""
    empty = {True: _NEW / ".empty.d", False: _NEW / ".empty"}
    empty[True].mkdir(0o500)
    empty[False].touch(0o400)
    for path in paths:
        target = _below(_NEW, path)
        kernel.mount(str(empty[target.is_dir()]), str(target), None, kernel.BIND)
        kernel.set_attributes(str(target), kernel.READ_ONLY, below=False)


def _make_devices(shared_memory: int) -> None:
    """Mount a `/dev` with few devices, an own shared memory and own pseudo-terminals."""
    dev = _NEW / "dev"
    dev.mkdir()
    kernel.mount("tmpfs", str(dev), "tmpfs", kernel.NOSUID | kernel.NOEXEC, "mode=755")
    for pattern in DEVICES:
        for source in sorted((_OLD / "dev").glob(pattern)):
            if not source.is_symlink():
                target = dev / source.name
                _make_like(source, target)
                kernel.mount(str(source), str(target), None, kernel.BIND | kernel.RECURSIVE)
    for name, target_of_link in _LINKS.items():
        (dev / name).symlink_to(target_of_link)
    for name in ("shm", "pts"):
        (dev / name).mkdir()
    kernel.mount("tmpfs", str(dev / "shm"), "tmpfs", kernel.NOSUID | kernel.NODEV, f"mode=1777,size={shared_memory}")
    options = "newinstance,ptmxmode=0666,mode=620"
    kernel.mount("devpts", str(dev / "pts"), "devpts", kernel.NOSUID | kernel.NOEXEC, options)


def _make_like(source: Path, target: Path) -> None:
    """Make the place for a mount, unless an outer mount has it: a folder, or a file where the source is none."""
    if target.exists():
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
