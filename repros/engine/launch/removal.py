"""Removal of the folders in which scripts have written: also deeply nested ones, and those without any permission."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

_TIMEOUT = 60
"""Seconds of each program."""


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything below it, as far as this user may; follow no link."""
    with contextlib.suppress(RecursionError):  # Python's own removal calls itself for each level
        shutil.rmtree(folder, ignore_errors=True)
    for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        if os.path.lexists(folder):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run([*words, "--", str(folder)], capture_output=True, timeout=_TIMEOUT, check=False)
