"""Arming: make this process observe itself, from its first line on.

Everything is attached when the module that it concerns has been imported; a program that never imports torch pays for
the exception hook alone.
"""

from __future__ import annotations

import importlib
import os

from repros.inside.import_hooks import when_imported
from repros.inside.watchers import watch_exceptions, watch_processes
from repros.watch.inside.events import Events
from repros.watch.inside.watch import Options, Watch

FOLDER, EVERY, ONLY, SKIP = "REPROS_WATCH", "REPROS_WATCH_EVERY", "REPROS_WATCH_ONLY", "REPROS_WATCH_SKIP"
"""Environment variables: the folder of events, and the options of the command."""

CHECKS = (
    *("gradients", "precision", "share", "reaches", "effect", "used", "mode", "state", "restored", "rate", "order"),
    *("stream", "loop", "checkpoint", "kept", "copies", "hooks", "collectives", "waiting"),
)
"""The families of checks, each a module of `checks/` with a function `listen(watch)`."""

OBSERVERS = (
    *("compiling", "backward", "optimizers", "schedules", "replicas", "modules", "loaders", "saves", "clips"),
    *("collectives", "lightning"),
)
"""The kinds of observation, each a module of `observe/` with a function `attach(watch)`."""

armed: list[Watch] = []
"""The watch of this process, once it is armed."""


def install(folder: str) -> None:
    """Arm this process, and those it creates, by its environment; an error leaves the program as it is."""
    only, skip = (frozenset(filter(None, os.environ.get(name, "").split(","))) for name in (ONLY, SKIP))
    every = os.environ.get(EVERY, "")
    begin(Options(folder, int(every) if every.isdigit() else 0, only, skip))


def begin(options: Options) -> None:
    """Watch this process, with checks that know nothing yet; an error leaves the program as it is."""
    if not armed:
        armed.append(Watch(Events(None)))
        _attach(armed[0])
    watch = armed[0]
    watch.begin(options)
    try:
        for name in CHECKS:
            importlib.import_module(f"{__package__}.checks.{name}").listen(watch)
        watch.events.write("start")
    except Exception as error:
        watch.events.failed(error, "arming")


def _attach(watch: Watch) -> None:
    try:
        watch_exceptions(watch.events)
        when_imported("multiprocessing.process", lambda module: watch_processes(watch.events, module))
        for name in OBSERVERS:
            importlib.import_module(f"{__package__}.observe.{name}").attach(watch)
    except Exception as error:
        watch.events.failed(error, "arming")
