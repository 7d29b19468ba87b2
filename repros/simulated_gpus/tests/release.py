"""The release of torch in this environment, found without importing it."""

from __future__ import annotations

import importlib.metadata


def installed_release(distribution: str) -> tuple[int, int]:
    """Return the first two numbers of a distribution's version; (0, 0) if it is not installed."""
    try:
        major, minor = importlib.metadata.version(distribution).split(".")[:2]
    except importlib.metadata.PackageNotFoundError:
        return (0, 0)
    return int(major), int(minor)


TORCH = installed_release("torch")
