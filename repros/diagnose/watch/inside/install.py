"""Installation: make this process observe itself, from its first line on.

Each observer is attached once the module that it patches has been imported; a program that never imports torch pays for
the exception hook alone.
"""

from __future__ import annotations

import atexit
import importlib
import os

from repros.diagnose.watch.inside.checks import families
from repros.diagnose.watch.inside.events import Events
from repros.diagnose.watch.inside.watch import Watch, WatchOptions
from repros.inside.instrumentation import record_exceptions, record_processes
from repros.simulated_gpus.import_hooks import when_imported

OBSERVERS = (
    *("compiling", "backward", "optimizers", "replicas", "modules", "loaders", "collectives"),
    *("calls", "accelerators", "adapters", "initialisation", "coverage"),
)
"""The kinds of observation, each a module of `observe/` with a function `attach(watch)`."""

LISTENER = "listener"
"""The file in the folder of events that replaces the checks.

It holds the name of a module with a function `listen(watch)`. `repros compare` has its recorder loaded by it.
"""

installed: list[Watch] = []
"""The watch of this process, once there is one."""


def install() -> None:
    """Watch this process and those that it creates, by the options in its environment; an error changes nothing."""
    begin(WatchOptions.from_environ(os.environ))


def begin(options: WatchOptions) -> None:
    """Watch this process, with checks that know nothing yet; an error leaves the program as it is."""
    if not installed:
        installed.append(Watch(Events(None)))
        _attach(installed[0])
    watch = installed[0]
    watch.begin(options)
    try:
        listener = _read_listener(options.folder)
        if listener is not None:
            importlib.import_module(listener).listen(watch)
        else:
            for family in families():
                family.listen(watch)
        watch.events.write("start")
    except Exception as error:
        watch.events.failed(error, "its installation")


def _read_listener(folder: str) -> str | None:
    """Return the module that replaces the checks; None where there is none."""
    try:
        with open(os.path.join(folder, LISTENER), encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _attach(watch: Watch) -> None:
    try:
        record_exceptions(watch.events)
        when_imported("multiprocessing.process", lambda module: record_processes(watch.events, module))
        atexit.register(_notify_end, watch, os.getpid())
        for name in OBSERVERS:
            importlib.import_module(f"{__package__}.observe.{name}").attach(watch)
    except Exception as error:
        watch.events.failed(error, "its installation")


def _notify_end(watch: Watch, pid: int) -> None:
    """Make the observation `ends()` in the process that registered it, and not in a child that it has forked."""
    if os.getpid() == pid:
        watch.notify("ends")
