"""A cgroup for the memory of all processes of a script, where this process may make one.

Version 2 lets a group either have processes or pass its controllers on, so the new group lies next to that of this
process: systemd delegates the groups above the programs of a user's session to that user. In version 1 it lies below.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_OWN_GROUPS, _MOUNTS = Path("/proc/self/cgroup"), Path("/proc/self/mounts")
_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""The files with the limit, of version 2 and of version 1."""
_PREFIX = "repros-"
_LEFT_AFTER = 60.0
"""Seconds after which a group without processes was left by a killed command."""
_REMOVAL_TIMEOUT = 2.0
"""Seconds within which the kernel forgets the processes that have ended."""


@contextlib.contextmanager
def memory_group(most: int) -> Iterator[Path | None]:
    """Make a cgroup whose processes may use `most` bytes of memory, and remove it; yield None if there can be none."""
    group = next(filter(None, (_make(parent, most) for parent in _parents())), None)
    try:
        yield group
    finally:
        if group is not None:
            _remove(group)


def _parents() -> Iterator[Path]:
    """Yield the groups below which one with a limit may be made."""
    try:
        own = dict(_controllers(line) for line in _OWN_GROUPS.read_text("ascii", "replace").splitlines())
        mounts = [line.split() for line in _MOUNTS.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return
    for _, place, kind, options, *_ in mounts:
        if kind == "cgroup2" and "" in own:
            yield (Path(place) / own[""]).parent
        elif kind == "cgroup" and "memory" in options.split(",") and "memory" in own:
            yield Path(place) / own["memory"]


def _controllers(line: str) -> tuple[str, str]:
    """Return the controllers of a line `NUMBER:CONTROLLERS:/GROUP`, and the group."""
    _, controllers, group = line.split(":", 2)
    return controllers, group.lstrip("/")


def _make(parent: Path, most: int) -> Path | None:
    try:
        group = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    except OSError:
        return None
    _remove_left(parent)
    for name in _LIMITS:
        with contextlib.suppress(OSError), (group / name).open("r+", encoding="ascii") as file:
            file.write(str(most))
            return group
    _remove(group)
    return None


def _remove_left(parent: Path) -> None:
    """Remove the groups that killed commands have left; the kernel removes none that has processes."""
    for group in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - group.stat().st_mtime > _LEFT_AFTER:
                group.rmdir()


def _remove(group: Path) -> None:
    until = time.monotonic() + _REMOVAL_TIMEOUT
    while time.monotonic() < until:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
