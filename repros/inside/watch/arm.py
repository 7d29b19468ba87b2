"""Arming: make this process observe itself, from its first line on.

Everything is attached when the module that it concerns has been imported; a program that never imports torch pays for
the exception hook alone.
"""

from __future__ import annotations

import importlib
import os

from ..sim.import_hooks import when_imported
from ..watchers import watch_exceptions, watch_processes
from .events import Events
from .watch import Watch

FOLDER, EVERY, ONLY, SKIP = "REPROS_WATCH", "REPROS_WATCH_EVERY", "REPROS_WATCH_ONLY", "REPROS_WATCH_SKIP"
"""Environment variables: the folder of events, and the options of the command."""

CHECKS = ("gradients", "reaches", "mode", "state", "order", "checkpoint", "rate", "loop", "copies", "effect")
"""The families of checks, each a module of `checks/` with a function `listen(watch)`."""

OBSERVERS = ("backward", "optimizers", "replicas", "modules", "loaders", "saves", "lightning")
"""The kinds of observation, each a module of `observe/` with a function `attach(watch)`."""

armed: list[Watch] = []
"""The watch of this process, once it is armed."""


def install(folder: str) -> None:
    """Arm this process and those it creates; an error leaves the program as it is."""
    events = Events(folder)
    try:
        every = int(os.environ.get(EVERY) or 0)
        only, skip = (frozenset(filter(None, os.environ.get(name, "").split(","))) for name in (ONLY, SKIP))
        watch = Watch(events, every, only, skip)
        watch_exceptions(events)
        when_imported("multiprocessing.process", lambda module: watch_processes(events, module))
        for name in CHECKS:
            importlib.import_module(f"{__package__}.checks.{name}").listen(watch)
        for name in OBSERVERS:
            importlib.import_module(f"{__package__}.observe.{name}").attach(watch)
        armed.append(watch)
        events.write("start")
    except Exception as error:
        events.failed(error, "arming")
