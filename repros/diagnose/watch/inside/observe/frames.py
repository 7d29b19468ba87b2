"""Frames of the watch between the program's own and those of the called function."""

from __future__ import annotations

from typing import Any

_FILE = "<repros watch, importlib._bootstrap>"


def is_ours(file: str) -> bool:
    """Return whether this is the file name of such a frame."""
    return file == _FILE


def uncounted(function: Any) -> Any:
    """Return a function whose frames `stacklevel` does not count.

    A warning in what it calls names the program's own line then, as without the watch: CPython skips frames whose file
    name holds `importlib` and `_bootstrap`, since 3.3 (`warnings._is_internal_frame`).
    """
    function.__code__ = function.__code__.replace(co_filename=_FILE)
    return function
