"""Whether a script fails as another one does: each is run within the walls of `repros try`."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

from packaging.requirements import Requirement

from repros.engine.environment import Targets, prepare
from repros.engine.judge import judge
from repros.engine.launch import supervise
from repros.engine.launch.warm import modules_of
from repros.engine.plan import plan
from repros.model import Cell, Device, Launch, Observation
from repros.model.errors import ReprosError
from repros.scripts.reduce.failure import Failure, failure_of
from repros.scripts.try_.cell import as_spec
from repros.scripts.try_.needs import package_of
from repros.scripts.try_.orphans import adopted
from repros.scripts.try_.run import Task, place
from repros.scripts.try_.sight import Sight, Status, logs_of, see
from repros.scripts.try_.source import imported_names
from repros.scripts.try_.start import Start
from repros.scripts.try_.zygote import WarmStart, Zygote

_FEWEST_SECONDS, _TIMES = 15.0, 3.0
"""That a candidate gets: so many, and so many times what the script takes."""


class Oracle:
    """Runs scripts on one stack, several at once, each in a process that is forked from one with the libraries."""

    def __init__(self, task: Task, cell: Cell, runs: Path, texts: tuple[str, ...] = ()) -> None:
        """Take what to run, where, the folder for logs, and the texts that the output must have, if any."""
        self.task, self.texts = replace(task, options=replace(task.options, watch=False)), texts
        self._cell, self._runs = cell, runs
        self._numbers = itertools.count(1)
        self._zygotes: dict[int, Zygote] = {}
        self._lock = threading.Lock()
        self._one = threading.Lock()
        self._stop = threading.Event()
        self._is_warm = not task.options.own

    def __enter__(self) -> Self:
        """Return itself; servers start when they are needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the servers."""
        for zygote in self._zygotes.values():
            zygote.__exit__()

    def stop(self) -> None:
        """End the scripts that run now; they count as not failing."""
        self._stop.set()
        self._stop = threading.Event()

    def begin(self) -> tuple[Failure | None, Sight, float]:
        """Run the script itself, as `repros try` does and forked, and return how it fails, what was seen, and seconds.

        Where both do not fail alike, candidates run as `repros try` does, each with its own imports.
        """
        failure, sight, seconds = self.run(self.task.python_script.source, self.task.options.ranks, warm=False)
        if self._is_warm and (failure is not None or sight.status is Status.CLEAN):
            with contextlib.suppress(ReprosError):
                forked, seen, forked_seconds = self.run(self.task.python_script.source, self.task.options.ranks)
                self._is_warm = (forked, seen.status) == (failure, sight.status)
                seconds = forked_seconds if self._is_warm else seconds
        limits = self.task.limits
        limit = min(limits.seconds, max(_FEWEST_SECONDS, _TIMES * seconds + 5.0))
        self.task = replace(self.task, limits=replace(limits, seconds=limit))
        return failure, sight, seconds

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return self._cell.environment.name

    @property
    def is_warm(self) -> bool:
        """Whether candidates are forked from a process that has imported the libraries."""
        return self._is_warm

    def is_clean(self, source: str, ranks: int, *, warm: bool | None = None) -> bool:
        """Return whether a script ends clean here, and its output does not have the texts."""
        failure, sight, _ = self.run(source, ranks, warm=warm)
        return failure is None and sight.status is Status.CLEAN

    def run(self, source: str, ranks: int, *, warm: bool | None = None) -> tuple[Failure | None, Sight, float]:
        """Run a script and return how it fails, what was seen, and the seconds that it took.

        Raises:
            ReprosError: the engine could not do its work.
        """
        task = replace(
            self.task,
            script=replace(self.task.python_script, source=source),
            options=replace(self.task.options, ranks=ranks),
        )
        spec = as_spec(task.script.name, task.needs, task.options, task.limits)
        cell = replace(self._cell, repro=spec.repro, variant=spec.variant, processes=ranks)
        folder = self._runs / f"{next(self._numbers)}"
        is_warm = self._is_warm if warm is None else warm
        start, launch = self._start(task, cell, warm=is_warm), Launch.WARM if is_warm else Launch.COLD
        with contextlib.nullcontext() if is_warm else self._alone(), ThreadPoolExecutor(1) as pool:
            stop = self._stop
            running = pool.submit(supervise.run, cell, folder, start, launch, stop)
            try:
                observation = running.result()
            except BaseException:
                stop.set()
                raise
        try:
            sight = see(judge(cell, observation), start.folder)
            failure = failure_of(sight, task.script.name, source, _written(observation, self.texts), self.texts)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return failure, sight, observation.seconds

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Run one script at a time: what the end of one leaves without a parent is ended, whoever's it was."""
        with self._one, adopted():
            yield

    def _start(self, task: Task, cell: Cell, *, warm: bool) -> Start:
        arguments = (task.script, task.arguments, task.limits, task.walls, task.options)
        if not warm:
            return Start(*arguments)
        start = WarmStart(*arguments)
        start.zygote = self._zygote(cell)
        return start

    def _zygote(self, cell: Cell) -> Zygote:
        """Return the server for a number of devices, which simulated GPUs fix when they are loaded."""
        devices = 1 if cell.device is Device.CPU else cell.processes
        with self._lock:
            known = self._zygotes.get(devices)
            if known is not None and not known.is_alive:
                known.__exit__()
            if known is None or not known.is_alive:
                self._runs.mkdir(parents=True, exist_ok=True)
                options, network = self.task.options, not self.task.walls.network
                log = self._runs / f"libraries-{devices}.log"
                modules = self._modules(cell)
                self._zygotes[devices] = Zygote(cell, modules, log, network=network, gpus=options.gpus)
            return self._zygotes[devices]

    def _modules(self, cell: Cell) -> list[str]:
        """Return what to import once: what the script imports first, and what its packages import late."""
        modules, names = self.task.script.modules, imported_names(self.task.python_script.source)
        packages = tuple(Requirement(name) for name in dict.fromkeys(map(package_of, modules)))
        late = modules_of(replace(cell, repro=replace(cell.repro, dependencies=packages)))
        own = {path.stem for path in self.task.python_script.beside}
        lazy = [f"{module}:{name}" for module, name in names if module in modules and module not in own]
        return list(dict.fromkeys([*modules, *late, *lazy]))


@contextlib.contextmanager
def open_oracle(
    task: Task, where: Targets, runs: Path, texts: tuple[str, ...], report_progress: Callable[[str], None]
) -> Iterator[Oracle]:
    """Make a stack ready for candidates of a script.

    Raises:
        ReprosError: there is no such stack, or the script cannot run there.
    """
    spec = as_spec(task.script.name, task.needs, task.options, task.limits)
    with prepare([spec], where, report_progress) as environments:
        (item,) = plan([spec], environments)
        cell, why = place(task, item)
        if why is not None:
            raise ReprosError(f"{why}; expected a stack on which the script runs: repros stacks lists them.")
        with Oracle(task, cell, runs, texts) as oracle:
            yield oracle


def _written(observation: Observation, texts: tuple[str, ...]) -> str:
    if not texts:
        return ""
    files = logs_of(observation.processes, observation.folder)
    return "\n".join(file.read_text("utf-8", "replace") for file in files)
