"""Files outside of every cell, which no cell and no command may change: a tree of witnesses, and its state."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from tests.chaos.leaks import Violation

MARK = "only its owner may read this line"
"""What no output and no log may contain."""
_LARGE = 3_000_000
"""Bytes of a witness; the engine cuts a log of this length."""


class _State(NamedTuple):
    """What a file must keep: its kind and permissions, the time of its last change, and its content."""

    mode: int
    changed: int
    content: str


class Witnesses:
    """A tree of files, and their states when they were written."""

    def __init__(self, folder: Path) -> None:
        """Write the tree to a new folder."""
        self.folder = folder
        (folder / "folder" / "empty").mkdir(parents=True)
        line = f"{MARK}\n"
        (folder / "large.txt").write_text(line * (_LARGE // len(line)), "utf-8")
        (folder / "folder" / "small.txt").write_text(line, "utf-8")
        (folder / "folder" / "program").write_text("#!/bin/sh\n", "utf-8")
        (folder / "folder" / "program").chmod(0o750)
        (folder / "link").symlink_to("large.txt")
        self._states = self._take()

    def check(self) -> None:
        """Raise if a file was changed, added or removed since the last check.

        Raises:
            Violation: with the paths.
        """
        before, self._states = self._states, self._take()
        names = {*before, *self._states}
        if changed := sorted(name for name in names if before.get(name) != self._states.get(name)):
            raise Violation(f"files outside were changed: {', '.join(changed)}")

    def _take(self) -> dict[str, _State]:
        found = {}
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            content = str(path.readlink()) if path.is_symlink() else ""
            if stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[os.fspath(path.relative_to(self.folder))] = _State(status.st_mode, status.st_mtime_ns, content)
        return found
