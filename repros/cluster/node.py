"""A node's part of a run: one process that holds the stacks' environments and warm servers, and runs cells.

It knows nothing of Ray, which calls its methods in threads: one for each cell, and some for questions.
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

from repros.cluster.keeper import Keeper
from repros.cluster.parcel import Parcel, pack_logs
from repros.cluster.surroundings import receive_interrupts, restore_environment, restore_priority
from repros.engine import environments, header
from repros.engine.cells import folder_name, is_warm, run_cell_with_port, without_loss
from repros.engine.environment import Targets, prepare
from repros.engine.environments.use import drop_afterwards
from repros.engine.launch import Servers, reaper
from repros.engine.plan import CellSpec, plan
from repros.engine.probe import ProbeError, probe
from repros.model import Cell, CellResult, Device, Environment, Launch, Stack, Unavailable
from repros.model.errors import ReprosError

_QUIET = 2.0
"""Seconds that a request for news waits for some."""
_ENDING = 6.0
"""Seconds that interrupted cells get to end; a cell's own limit is five."""


class EndedError(Exception):
    """A cell that was ended before its outcome was there."""

    def __init__(self, ticket: str) -> None:
        """Name the try; Ray sends the exception on as it was made."""
        super().__init__(ticket)


@dataclass(frozen=True)
class Site:
    """Where cells run on a node: a stack's environment, or an interpreter that the node has at that path."""

    name: str
    """The stack's name, or the interpreter's path."""
    stack: Stack | None = None
    lock: Parcel | None = None
    """The stack's lock."""
    python: Path | None = None

    def on_this_machine(self, folder: Path) -> Site:
        """Return it with the lock where this machine has it; that of a private stack is written below a folder."""
        if self.stack is None or self.lock is None:
            return self
        return replace(self, stack=replace(self.stack, lock=self.lock.unpack(folder)))

    @property
    def where(self) -> Targets:
        """The same in the engine's words."""
        if self.stack is None:
            return Targets(python=self.python, known={})
        return Targets((self.name,), known={self.name: self.stack})


@dataclass(frozen=True)
class Work:
    """One cell to run on a site."""

    script: Parcel
    variant: str
    strategy: str
    device: Device


@dataclass(frozen=True)
class Orders:
    """How the cells of a run are run."""

    launch: Launch | None = None
    repeat: int = 1
    keep: bool | None = None
    """Whether the environments that this run makes stay until a run with False; None: they stay for good."""


@dataclass(frozen=True)
class Outcome:
    """What a node knows of a cell that it has run; the paths in it are the node's."""

    result: CellResult
    base: Path
    """The folder that the paths of the cell's logs are below."""
    logs: bytes | None
    """An archive of that folder; None for a cell that agrees."""


@dataclass(frozen=True)
class News:
    """What has happened on a node since the last time."""

    lines: tuple[str, ...]
    """Lines of progress."""
    running: frozenset[str]
    """Tickets of the cells that run."""


@dataclass
class _Place:
    """A site that is ready."""

    items: list[Cell | Unavailable]
    """What to run, in the order of its :class:`Work`."""
    servers: Servers
    orders: Orders
    site: Site
    held: ExitStack


class Node:
    """One node's part of one run."""

    def __init__(self) -> None:
        """Take over a process that Ray has started."""
        restore_priority()
        restore_environment()
        Keeper.install()
        self._folder = Path(tempfile.mkdtemp(prefix="repros-node-")).resolve()
        receive_interrupts()
        # As a cell's working directory, it is deleted even if this process is killed.
        reaper.of_this_runner.add_run(self._folder)
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._places: dict[str, _Place] = {}
        self._stops: dict[str, threading.Event] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def find_ready(self, sites: Sequence[Site]) -> list[str]:
        """Return the names of the sites that need no installation here."""
        here = [site.on_this_machine(self._folder / "locks") for site in sites]
        return [site.name for site in here if site.stack is None or environments.ready(site.stack)]

    def describe(self, python: Path) -> Environment | str:
        """Return what is in the environment of an interpreter of this node, or why there is none."""
        receive_interrupts()
        try:
            return replace(probe(python, report_progress=self._lines.put), platform=platform.platform())
        except ProbeError as error:
            return str(error)

    def prepare(self, site: Site, works: Sequence[Work], orders: Orders) -> Environment | None:
        """Make a site's environment unless it is there, and plan its cells on it.

        Returns:
            The environment if no cell can run in it, because it could not be made; else None.
        """
        receive_interrupts()
        site = site.on_this_machine(self._folder / "locks")
        repros = {script: header.read(script.unpack(self._folder / "scripts")) for script in {w.script for w in works}}
        specs = []
        for work in works:
            repro = repros[work.script]
            variant = repro.variant(work.variant)
            assert variant is not None, f"{repro.path} has no variant {work.variant}"
            specs.append(CellSpec(repro, variant, work.strategy, work.device))
        with ExitStack() as held:
            if site.stack is not None and orders.keep is not None:
                held.enter_context(drop_afterwards(site.stack, self._lines.put, keep=orders.keep))
            try:
                found = held.enter_context(prepare(specs, site.where, self._lines.put))
            except ReprosError as error:  # the user's own interpreter is not here
                assert site.python is not None
                return Environment(site.name, site.python, "", {}, broken=str(error))
            items = plan(specs, lambda repro: [replace(each, platform=platform.platform()) for each in found(repro)])
            made = [environment for repro in repros.values() for environment in found(repro)]
            broken = next((each for each in made if each.broken), None)
            servers = held.enter_context(Servers(self._folder / "servers" / str(len(self._places)), self._lines.put))
            self._places[site.name] = _Place(items, servers, orders, site, held.pop_all())
        return broken

    def run(self, ticket: str, site: str, number: int, gpus: tuple[str, ...]) -> Outcome:
        """Run one cell of a site that is ready, by its place among the site's works.

        Args:
            ticket: names this try; nothing is run once :meth:`end` has been called for it.
            site: the site's name.
            number: the cell's place.
            gpus: the GPUs that Ray gives to it.

        Raises:
            EndedError: the cell was ended, so nothing can be said of it.
        """
        receive_interrupts()
        stop = threading.Event()
        with self._lock:
            if ticket in self._ended:
                raise EndedError(ticket)
            self._stops[ticket] = stop
        base = self._folder / "cells" / ticket
        try:
            place = self._places[site]
            outcome = _run(place, place.items[number], base, stop, gpus)
            if stop.is_set():
                raise EndedError(ticket)
            return outcome
        finally:
            self._stops.pop(ticket, None)
            shutil.rmtree(base, ignore_errors=True)

    def end(self, ticket: str) -> None:
        """End a cell, or let it not begin."""
        with self._lock:
            self._ended.add(ticket)
            if stop := self._stops.get(ticket):
                stop.set()

    def news(self) -> News:
        """Return what has happened; wait a little if nothing has."""
        lines = self._take_lines(_QUIET)
        return News(lines, frozenset(self._stops))

    def _take_lines(self, seconds: float) -> tuple[str, ...]:
        """Return the lines of progress that nobody has taken; wait a little if there is none."""
        lines = []
        with contextlib.suppress(queue.Empty):
            lines.append(self._lines.get(timeout=seconds))
            while True:
                lines.append(self._lines.get_nowait())
        return tuple(lines)

    def release(self, site: str) -> tuple[str, ...]:
        """End the warm servers of a site whose cells are all done, and leave its environment to others.

        Returns:
            Lines of progress.
        """
        receive_interrupts()
        if place := self._places.pop(site, None):
            place.held.close()
        return self._take_lines(0.01)

    def close(self) -> None:
        """End everything that runs here, and delete what was written; an environment stays."""
        with self._lock:
            for stop in self._stops.values():
                stop.set()
        closing = [threading.Thread(target=self.release, args=(site,)) for site in list(self._places)]
        for thread in closing:
            thread.start()
        until = time.monotonic() + _ENDING
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
        while self._stops and time.monotonic() < until:
            time.sleep(0.02)
        shutil.rmtree(self._folder, ignore_errors=True)
        reaper.of_this_runner.close()


def _run(place: _Place, item: Cell | Unavailable, base: Path, stop: threading.Event, gpus: tuple[str, ...]) -> Outcome:
    """Run a cell below a folder, and pack its logs if somebody will want to read them."""
    if gpus and isinstance(item, Cell):
        item = replace(item, gpus=gpus)
    servers = place.servers if is_warm(item, place.orders.launch) else None
    result = run_cell_with_port(item, base, stop, servers, place.orders.repeat)
    if place.site.stack is not None:
        result = without_loss(result, {place.site.name: place.site.stack})
    wanted = isinstance(item, Cell) and result.verdict.disagrees and (base / folder_name(item)).is_dir()
    return Outcome(result, base, pack_logs(base) if wanted else None)
