"""Loading on demand: the backend is loaded once torch is imported, and each library's bridge once the library is.

A process that never imports torch pays nothing. Spawned and re-launched processes inherit the environ that armed this
one and arm themselves; forked processes are armed already.
"""

from __future__ import annotations

from .import_hooks import when_imported


def install() -> None:
    """Load the backend once torch is imported in this process. Further calls do nothing."""
    if not _installed:
        _installed.append(True)
        when_imported("torch", _load_backend)


_installed: list[bool] = []


def _load_backend(_torch: object) -> None:
    from . import load

    load()  # also installs the libraries' bridges
