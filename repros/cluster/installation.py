"""The installation of repros and Python, which must be the same on the driver and the nodes."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repros import __version__

_PACKAGE = Path(__file__).parents[1]
_EXCLUDED_FOLDERS = {"__pycache__", "docs", "evidence", "site", "tests", "tools"}
"""Folders that cells do not depend on."""


@dataclass(frozen=True)
class Installation:
    """One installation of repros."""

    version: str
    sources: str
    """Digest of the installed files, since checkouts of one version may differ."""
    python: str
    """`3.11`; values are exchanged as pickles."""

    def difference_from(self, node: Installation) -> str | None:
        """Return the difference of a node's installation, such as `repros 0.1.0 and not 0.2.0`; None without one."""
        if node.python != self.python:
            return f"Python {node.python} and not {self.python}"
        if node.version != self.version:
            return f"repros {node.version} and not {self.version}"
        return None if node.sources == self.sources else f"another repros {node.version}, with other files"


@cache
def this_installation() -> Installation:
    """Return this installation."""
    return Installation(__version__, digest_of(_PACKAGE), ".".join(platform.python_version_tuple()[:2]))


def digest_of(package: Path) -> str:
    """Return the digest of the files that a cell may depend on."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(set(folders) - _EXCLUDED_FOLDERS)
        for name in sorted(files):
            file = Path(folder, name)
            digest.update(f"{file.relative_to(package)}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
