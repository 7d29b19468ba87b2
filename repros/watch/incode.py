"""The watch in a program that has this project installed: `with repros.watch.watching():`."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from repros.engine import catalogue
from repros.inside.watch import arm
from repros.watch.events import EventFolder
from repros.watch.finding import Finding
from repros.watch.identify import Identified
from repros.watch.report import Found, Report

_POLL = 0.5
"""Seconds between two looks at the events."""


def print_finding(finding: Finding, ids: tuple[Identified, ...]) -> None:
    """Print a finding to stderr, on one line."""
    names = ", ".join(f"{one.repro.id} {one.confidence.value}" for one in ids)
    at = f" at {finding.place}" if finding.place else ""
    sys.stderr.write(f"repros: {finding.text}{at} ({names or finding.check})\n")


@contextlib.contextmanager
def watching(
    show: Callable[[Finding, tuple[Identified, ...]], None] = print_finding, *, every: int = 0
) -> Iterator[list[Found]]:
    """Watch this process, and the ranks that it starts; yield the list to which findings are added.

    Enter it before the program makes its models and optimizers: what is made earlier is not observed. The observation
    goes on after the block, since patches are not taken back, but nothing reads it. Ranks that another process has
    started, as torchrun does, are watched apart, and their gradients are not compared; `repros watch` does that.

    Args:
        show: called with each finding, in a thread of its own.
        every: also look at every N-th step; 0 for 1, 2, 4, 8 ... alone.
    """
    with tempfile.TemporaryDirectory(prefix="repros-watch-", ignore_cleanup_errors=True) as name:
        report, events, over = Report(catalogue.load(), show), EventFolder(Path(name)), threading.Event()

        def read() -> None:
            while not over.wait(_POLL):
                for event in events.poll():
                    report.take(event)

        with _environ({arm.FOLDER: name, arm.EVERY: str(every), "PYTHONPATH": _site_first()}):
            arm.install(name)
            reader = threading.Thread(target=read, name="repros-watch", daemon=True)
            reader.start()
            try:
                yield report.found
            finally:
                over.set()
                reader.join()
                for event in events.poll():
                    report.take(event)
                report.finish()


def _site_first() -> str:
    site = Path(arm.__file__).parents[1] / "site"
    return os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])


@contextlib.contextmanager
def _environ(changed: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
