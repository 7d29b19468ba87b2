"""Paths of installed modules, as tracebacks and stacks name them."""

from __future__ import annotations

import re

_PACKAGES = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")


def path_in_package(path: str) -> str:
    """Return a file's path without the folder of installed packages, or of the standard library, that it is in."""
    return _PACKAGES.sub("", path)
