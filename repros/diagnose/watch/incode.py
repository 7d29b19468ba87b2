"""The watch in a program that has this project installed: `with repros.diagnose.watch.watching():`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from repros.diagnose.watch.events import EventFolder
from repros.diagnose.watch.finding import Finding
from repros.diagnose.watch.identify import Identified
from repros.diagnose.watch.inside import install
from repros.diagnose.watch.inside.watch import WatchOptions
from repros.diagnose.watch.names import FIRST_NAN, refuse_unknown_checks
from repros.diagnose.watch.report import Found, Report
from repros.engine import catalogue
from repros.inside import contract
from repros.model import Repro
from repros.model.process_environ import changed_environ

_IS_WATCHED = bool(install.installed)
"""Whether this process is watched from outside, by `repros watch` or by the rank that started it."""

_POLL = 0.5
"""Seconds between two reads of the events."""

_loaded: list[Repro] = []
"""The catalogue, read once: a test suite enters `watching` for each test."""


def print_finding(finding: Finding, ids: tuple[Identified, ...]) -> None:
    """Print a finding to stderr, on one line."""
    names = ", ".join(f"{identified.repro.id} {identified.confidence.value}" for identified in ids)
    at = f" at {finding.place}" if finding.place else ""
    sys.stderr.write(f"repros: {finding.text}{at} ({names or finding.check})\n")


def ignore_finding(_finding: Finding, _ids: tuple[Identified, ...]) -> None:
    """Show nothing: the list has the finding."""


@contextlib.contextmanager
def watching(
    show: Callable[[Finding, tuple[Identified, ...]], None] = print_finding,
    *,
    every: int = 0,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    first_nan: bool = False,
) -> Iterator[list[Found]]:
    """Watch this process, and the ranks that it starts; yield the list to which findings are added.

    Enter it before the program makes its models and optimizers: what is made earlier is observed in part. Nothing is
    observed after the block. A block within another one takes over until it ends. Ranks that another process has
    started, as torchrun does, are watched separately, and their gradients are not compared; `repros watch` does that.
    In a process that is watched from outside, by `repros watch` or by the rank that started it, the list stays empty:
    the outer watch has the findings. An exception that leaves the block is compared, and raised again.

    Args:
        show: called with each finding, in a thread of its own.
        every: also inspect every N-th step; 0 for steps 1, 2, 4, 8, ... alone.
        only: names or first words of the checks that may report; empty for all.
        skip: names or first words of the checks that are disabled.
        first_nan: also inspect each step, and name where the first NaN or inf came from.

    Raises:
        UnknownNameError: a name of `only` or `skip` is neither that of a check nor the first words of one.
    """
    only, skip, also = frozenset(only), frozenset(skip), frozenset(FIRST_NAN if first_nan else ())
    refuse_unknown_checks([*sorted(only), *sorted(skip)])
    if _IS_WATCHED:
        yield []
        return
    _loaded[:] = _loaded or catalogue.load().repros
    folder = tempfile.mkdtemp(prefix="repros-watch-")
    options = WatchOptions(folder, every, only, skip, also)
    report, events, over = Report(_loaded, show, only=only, skip=skip), EventFolder(Path(folder)), threading.Event()
    owner, before = os.getpid(), install.installed[0].options if install.installed else None
    with changed_environ({**options.to_environ(), "PYTHONPATH": contract.python_path(os.environ.get("PYTHONPATH"))}):
        install.begin(options)
        reader = threading.Thread(target=_read, args=(report, events, over), name="repros-watch", daemon=True)
        reader.start()
        try:
            yield report.found
        except Exception as error:
            install.installed[0].events.exception(error, "block")
            raise
        finally:
            # A forked rank that leaves the block has neither the thread nor the folder.
            if os.getpid() == owner:
                install.installed[0].notify("ends")
                over.set()
                reader.join()
                for event in events.poll():
                    report.take(event)
                report.finish()
                shutil.rmtree(folder, ignore_errors=True)
                install.installed[0].end()
                if before is not None:
                    install.begin(before)


def _read(report: Report, events: EventFolder, over: threading.Event) -> None:
    while not over.wait(_POLL):
        for event in events.poll():
            report.take(event)
