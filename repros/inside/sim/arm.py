"""Arms a process: the backend is loaded as soon as torch is imported, each library's bridge as soon as it is.

It costs nothing in a process that never imports torch. Spawned and re-launched processes arm themselves the same way,
as the environment that armed this one is theirs too; forked ones are armed already.
"""

from __future__ import annotations

from .import_hooks import when_imported


def install() -> None:
    """Arms this process. Calling it again does nothing."""
    if not _armed:
        _armed.append(True)
        when_imported("torch", _load_backend)


_armed: list[bool] = []


def _load_backend(_torch: object) -> None:
    from . import load

    load()  # which arms the libraries' bridges
