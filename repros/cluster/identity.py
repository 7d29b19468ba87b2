"""What the driver and a node must have in common, so that a cell means the same on both: repros and Python."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repros import __version__

_PACKAGE = Path(__file__).parents[1]
_APART = {"__pycache__", "docs", "evidence", "site", "tests", "tools"}
"""Folders that no cell depends on."""


@dataclass(frozen=True)
class Identity:
    """One installation of repros."""

    version: str
    sources: str
    """Digest of the installed files: two checkouts of one version may differ."""
    python: str
    """`3.11`: values cross between the two as pickles."""

    def differs(self, node: Identity) -> str | None:
        """Return what is different on a node, as `repros 0.1.0 and not 0.2.0`; None if nothing is."""
        if node.python != self.python:
            return f"Python {node.python} and not {self.python}"
        if node.version != self.version:
            return f"repros {node.version} and not {self.version}"
        return None if node.sources == self.sources else f"another repros {node.version}, with other files"


@cache
def own_identity() -> Identity:
    """Return the identity of this installation."""
    return Identity(__version__, digest_of(_PACKAGE), ".".join(platform.python_version_tuple()[:2]))


def digest_of(package: Path) -> str:
    """Return the digest of the files that a cell may depend on."""
    found = hashlib.sha256()
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(set(folders) - _APART)
        for name in sorted(files):
            file = Path(folder, name)
            found.update(f"{file.relative_to(package)}\0".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]
