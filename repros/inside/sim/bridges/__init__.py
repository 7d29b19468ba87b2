"""Bridges: adapters that make a library do for `sim` what it does for `cuda` by name.

A bridge adapts one line of one library, and is applied once the module with that line has been imported. A test removes
each bridge and checks that the library fails without it; a bridge that a library no longer needs is deleted.
"""

from __future__ import annotations

import functools
from typing import Any

from ..import_hooks import when_imported  # this package is loaded under two names
from . import accelerate, lightning, safetensors, transformers
from .bridge import Bridge, installed_release, wrap

__all__ = ["Bridge", "all_bridges", "install", "installed_release", "wrap"]


def all_bridges() -> tuple[Bridge, ...]:
    """Return all bridges."""
    return (*lightning.BRIDGES, *accelerate.BRIDGES, *safetensors.BRIDGES, *transformers.BRIDGES)


def install(without: str | None = None) -> None:
    """Apply the bridges as their modules are imported, all except the one of the name `without`."""
    for bridge in all_bridges():
        if bridge.name != without:
            for module in bridge.modules:
                when_imported(module, functools.partial(_apply, bridge))


def _apply(bridge: Bridge, module: Any) -> None:
    package = module.__name__.partition(".")[0]
    if bridge.unneeded_from is None or installed_release(package) < bridge.unneeded_from:
        bridge.apply(module)
