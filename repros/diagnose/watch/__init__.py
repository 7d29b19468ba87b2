"""`repros watch`: run a training program unchanged, and report when a documented failure happens in it.

The program's processes observe themselves (:mod:`repros.diagnose.watch.inside`) and write events into a folder.
`session` starts the program and reads the folder while it runs, `compare`, `divergence` and `reduced_by_hand` compare
the events of its ranks, `coverage` says what the checks were shown, `identify` names the repros that a finding may be,
`crash` those that an exception may be. `text` and `json_format` present them.

A program that has this project installed can watch itself: :func:`watching` and :func:`lightning_callback`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repros.diagnose.watch.callback import lightning_callback
    from repros.diagnose.watch.incode import watching

_PLACES = {"watching": "repros.diagnose.watch.incode", "lightning_callback": "repros.diagnose.watch.callback"}

__all__ = ["lightning_callback", "watching"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:  # imported when asked for: the command needs neither
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
