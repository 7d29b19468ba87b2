"""The node agent: the process of a run on one node, which holds environments and warm servers, and runs cells.

It does not use Ray, which calls its methods in threads: one for each cell, and some for queries.
"""

from __future__ import annotations

import contextlib
import platform
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from repros.cluster.payload import Payload, pack_logs
from repros.cluster.reapers import DoubleReaper
from repros.cluster.worker_environment import receive_interrupts, restore_environment, restore_priority
from repros.engine import environments, header
from repros.engine.cells import folder_name, is_warm, run_cell_with_port, without_loss
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import drop_afterwards
from repros.engine.launch import Servers, reaper
from repros.engine.plan import CellSpec, plan
from repros.engine.probe import ProbeError, probe
from repros.model import Cell, CellResult, Device, Environment, Launch, Stack, Unavailable
from repros.model.errors import ReprosError

_STATUS_TIMEOUT = 2.0
"""Seconds that a request for a status report waits for lines of progress."""
_END_TIMEOUT = 6.0
"""Timeout, in seconds, for interrupted cells to end; the limit of a cell is 5 s."""


class CellEndedError(Exception):
    """A cell was ended before it had a result. The ticket is the only argument, since Ray pickles the exception."""

    def __init__(self, ticket: str) -> None:
        super().__init__(ticket)


@dataclass(frozen=True)
class Site:
    """An environment for cells on a node: a stack's, or that of an interpreter at the same path on the node."""

    name: str
    """The stack's name, or the interpreter's path."""
    stack: Stack | None = None
    lock: Payload | None = None
    """The stack's lock."""
    python: Path | None = None

    def on_this_machine(self, folder: Path) -> Site:
        """Return the site with its lock on this machine; a private stack's lock is written below a folder."""
        if self.stack is None or self.lock is None:
            return self
        return replace(self, stack=replace(self.stack, lock=self.lock.unpack(folder)))

    @property
    def targets(self) -> Targets:
        """The site as the engine's targets."""
        if self.stack is None:
            return Targets(python=self.python, known={})
        return Targets((self.name,), known={self.name: self.stack})


@dataclass(frozen=True)
class WorkItem:
    """One cell of a site."""

    script: Payload
    variant: str
    strategy: str
    device: Device


@dataclass(frozen=True)
class RunSettings:
    """How to run the cells of a run."""

    launch: Launch | None = None
    repeat: int = 1
    keep: bool | None = None
    """Whether environments of this run stay until a run with False; None: they stay permanently."""


@dataclass(frozen=True)
class NodeResult:
    """The result of a cell on a node; its paths are those of the node."""

    result: CellResult
    base: Path
    """The folder of the cell's logs."""
    logs: bytes | None
    """Archive of `base`; None for a cell that agrees."""


@dataclass(frozen=True)
class StatusReport:
    """The changes on a node since the last report."""

    lines: tuple[str, ...]
    """Lines of progress."""
    running: frozenset[str]
    """Tickets of the running cells."""


@dataclass
class _ReadySite:
    """A prepared site."""

    items: list[Cell | Unavailable]
    """The planned cells, in the order of the work items."""
    servers: Servers
    settings: RunSettings
    site: Site
    held: ExitStack


class NodeAgent:
    """The process of one run on one node."""

    def __init__(self) -> None:
        """Undo Ray's changes of this process, and install the reapers."""
        restore_priority()
        restore_environment()
        DoubleReaper.install()
        self._folder = Path(tempfile.mkdtemp(prefix="repros-node-")).resolve()
        receive_interrupts()
        # Registered like a cell's working directory, so that it is deleted even if this process is killed.
        reaper.of_this_runner.add_run(self._folder)
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ready_sites: dict[str, _ReadySite] = {}
        self._stops: dict[str, threading.Event] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def find_ready(self, sites: Sequence[Site]) -> list[str]:
        """Return the names of the sites that need no installation on this node."""
        here = [site.on_this_machine(self._folder / "locks") for site in sites]
        return [site.name for site in here if site.stack is None or environments.ready(site.stack)]

    def describe(self, python: Path) -> Environment | str:
        """Return the environment of an interpreter of this node, or an error message."""
        receive_interrupts()
        try:
            return replace(probe(python, report_progress=self._lines.put), platform=platform.platform())
        except ProbeError as error:
            return str(error)

    def prepare(self, site: Site, work_items: Sequence[WorkItem], settings: RunSettings) -> Environment | None:
        """Make the environment of a site unless it exists, and plan its cells on it.

        Returns:
            The environment if it could not be made; otherwise None.
        """
        receive_interrupts()
        site = site.on_this_machine(self._folder / "locks")
        repros = {
            script: header.read(script.unpack(self._folder / "scripts")) for script in {w.script for w in work_items}
        }
        specs = []
        for work_item in work_items:
            repro = repros[work_item.script]
            variant = repro.variant(work_item.variant)
            assert variant is not None, f"{repro.path} has no variant {work_item.variant}"
            specs.append(CellSpec(repro, variant, work_item.strategy, work_item.device))
        with ExitStack() as held:
            if site.stack is not None and settings.keep is not None:
                held.enter_context(drop_afterwards(site.stack, self._lines.put, keep=settings.keep))
            try:
                environments_of = held.enter_context(prepare(specs, site.targets, self._lines.put))
            except ReprosError as error:  # the user's own interpreter is missing
                assert site.python is not None
                return Environment(site.name, site.python, "", {}, broken=str(error))
            items = plan(
                specs,
                lambda repro: [
                    replace(environment, platform=platform.platform()) for environment in environments_of(repro)
                ],
            )
            made = [environment for repro in repros.values() for environment in environments_of(repro)]
            broken = next((environment for environment in made if environment.broken), None)
            servers = held.enter_context(
                Servers(self._folder / "servers" / str(len(self._ready_sites)), self._lines.put)
            )
            self._ready_sites[site.name] = _ReadySite(items, servers, settings, site, held.pop_all())
        return broken

    def run(self, ticket: str, site: str, number: int, gpus: tuple[str, ...]) -> NodeResult:
        """Run one cell of a prepared site.

        Args:
            ticket: identifies the attempt; after :meth:`end` with this ticket the cell does not start.
            site: the name of the site.
            number: index of the cell among the site's work items.
            gpus: the GPUs that Ray has assigned.

        Raises:
            CellEndedError: the cell was ended by :meth:`end`.
        """
        receive_interrupts()
        stop = threading.Event()
        with self._lock:
            if ticket in self._ended:
                raise CellEndedError(ticket)
            self._stops[ticket] = stop
        base = self._folder / "cells" / ticket
        try:
            ready_site = self._ready_sites[site]
            result = _run(ready_site, ready_site.items[number], base, stop, gpus)
            if stop.is_set():
                raise CellEndedError(ticket)
            return result
        finally:
            self._stops.pop(ticket, None)
            shutil.rmtree(base, ignore_errors=True)

    def end(self, ticket: str) -> None:
        """End a cell, or prevent its start."""
        with self._lock:
            self._ended.add(ticket)
            if stop := self._stops.get(ticket):
                stop.set()

    def status(self) -> StatusReport:
        """Return a status report; wait up to 2 s for lines of progress."""
        lines = self._take_lines(_STATUS_TIMEOUT)
        return StatusReport(lines, frozenset(self._stops))

    def _take_lines(self, seconds: float) -> tuple[str, ...]:
        """Return the queued lines of progress; wait up to a timeout, in seconds, for the first."""
        lines = []
        with contextlib.suppress(queue.Empty):
            lines.append(self._lines.get(timeout=seconds))
            while True:
                lines.append(self._lines.get_nowait())
        return tuple(lines)

    def release(self, site: str) -> tuple[str, ...]:
        """End the warm servers of a site without remaining cells, and release its environment.

        Returns:
            Lines of progress.
        """
        receive_interrupts()
        if ready_site := self._ready_sites.pop(site, None):
            ready_site.held.close()
        return self._take_lines(0.01)

    def close(self) -> None:
        """End all cells and servers, and delete temporary files; environments stay."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()
        closing = [threading.Thread(target=self.release, args=(site,)) for site in list(self._ready_sites)]
        for thread in closing:
            thread.start()
        until = time.monotonic() + _END_TIMEOUT
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
        while self._stops and time.monotonic() < until:
            time.sleep(0.02)
        shutil.rmtree(self._folder, ignore_errors=True)
        reaper.of_this_runner.close()


def _run(
    ready_site: _ReadySite, item: Cell | Unavailable, base: Path, stop: threading.Event, gpus: tuple[str, ...]
) -> NodeResult:
    """Run a cell with its logs in a folder, and pack the logs if the verdict disagrees."""
    if gpus and isinstance(item, Cell):
        item = replace(item, gpus=gpus)
    servers = ready_site.servers if is_warm(item, ready_site.settings.launch) else None
    result = run_cell_with_port(item, base, stop, servers, ready_site.settings.repeat)
    if ready_site.site.stack is not None:
        result = without_loss(result, {ready_site.site.name: ready_site.site.stack})
    wanted = isinstance(item, Cell) and result.verdict.disagrees and (base / folder_name(item)).is_dir()
    return NodeResult(result, base, pack_logs(base) if wanted else None)
