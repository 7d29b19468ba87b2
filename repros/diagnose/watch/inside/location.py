"""The location in the user's own code."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import FrameType

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)


def user_location(frame: FrameType | None = None) -> str | None:
    """Return `file:line function` of the innermost frame outside of libraries, or None.

    Args:
        frame: the innermost frame; if not given that of the caller.
    """
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return f"{file}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=1000)
def is_library(file: str) -> bool:
    """Return whether a file belongs to Python, an installed package or the watch."""
    if file.startswith(("<", _HERE)):
        return True
    path = os.path.realpath(file)
    return path.startswith(_LIBRARIES) or f"{os.sep}site-packages{os.sep}" in path
