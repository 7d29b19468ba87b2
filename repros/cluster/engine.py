"""The engine on a cluster: it plans on the driver and runs cells on nodes, with the interface of the local engine."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import ray
from ray.exceptions import RayError

from repros.cluster.dispatch import Dispatch, LostTask, MissingEnvironment, TaskOutcome
from repros.cluster.node_agent import RunSettings, Site, WorkItem
from repros.cluster.payload import Payload, unpack_logs
from repros.cluster.placement import CellTask
from repros.cluster.workers import WorkerPool, first_line, most_gpus
from repros.engine.environment import Targets, locked_environment
from repros.engine.own_folder import new_log_folder
from repros.engine.plan import CellSpec, plan
from repros.engine.run_options import Observer, RunOptions
from repros.engine.schedule import needs
from repros.model import Cell, CellResult, Device, Environment, Observation, Repro, Verdict
from repros.model.errors import ReprosError


class Cluster:
    """The engine on the nodes of a Ray cluster."""

    def __init__(self, jobs: int | None = None) -> None:
        """Initialise without starting workers; `jobs` is the maximum number of concurrent cells on all nodes."""
        self._jobs = jobs
        self.gpus: int | None = most_gpus()
        self._observer = Observer()
        self._worker_pool = WorkerPool(self._report_progress)
        self._tickets = map(str, itertools.count(1))

    def run(
        self, specs: Sequence[CellSpec], targets: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Run cell specs; :class:`repros.engine.run_options.Engine` explains the arguments."""
        self._observer = observer
        if not self._worker_pool.workers:
            self._worker_pool.start_workers()
        planned = plan(specs, self._environments(specs, targets), options.require)
        observer.planned(planned)
        runs = new_log_folder(out)
        yield from (
            CellResult(item.cell, Verdict.UNAVAILABLE, item.reason) for item in planned if not isinstance(item, Cell)
        )
        cells = {number: item for number, item in enumerate(planned) if isinstance(item, Cell)}
        jobs = [
            CellTask(number, cell.environment.name, needs(cell, options.timings(cell)))
            for number, cell in cells.items()
        ]
        dispatch = Dispatch(
            self._worker_pool,
            jobs,
            _sites(cells.values(), targets),
            RunSettings(options.launch, options.repeat, options.keep_environments),
            jobs=self._jobs,
            report_progress=observer.report_progress,
            started=lambda task: observer.started(cells[task.number]),
        )
        try:
            for task, outcome in dispatch.outcomes(self._tickets):
                yield _result(cells[task.number], outcome, runs)
        except KeyboardInterrupt:
            with contextlib.suppress(RayError):
                yield from (_result(cells[task.number], outcome, runs) for task, outcome in dispatch.collect_finished())
            raise

    def close(self) -> None:
        """Kill all processes of the run on all nodes."""
        self._worker_pool.close()

    def _report_progress(self, line: str) -> None:
        self._observer.report_progress(line)

    def _environments(self, specs: Sequence[CellSpec], targets: Targets) -> Callable[[Repro], Sequence[Environment]]:
        """Return the environments of each repro: a stack's from its lock, the user's own from a probe on a node."""
        repros = {spec.repro.id: spec.repro for spec in specs}
        if targets.python is not None:
            own = self._describe(targets.python)
            return lambda _: [own]
        stacks = {id_: targets.stacks_of(repro) for id_, repro in repros.items()}
        gpus = {Device.CUDA: self.gpus or 0}
        known = {stack.name: locked_environment(stack) for result in stacks.values() for stack in result}
        offered = {
            name: replace(environment, counts={**environment.counts, **gpus}) for name, environment in known.items()
        }
        return lambda repro: [offered[stack.name] for stack in stacks[repro.id]]

    def _describe(self, python: Path) -> Environment:
        """Return the environment of an interpreter, probed on one of the nodes.

        Raises:
            ReprosError: the interpreter is missing or cannot run cells, or the node was lost.
        """
        worker = next(iter(self._worker_pool.workers.values()))
        try:
            result: Environment | str = ray.get(worker.process.describe.remote(python))
        except RayError as error:
            raise ReprosError(f"the node {worker.name} is lost: {first_line(error)}.") from error
        if isinstance(result, str):
            raise ReprosError(f"on the node {worker.name}: {result}")
        return result


def _sites(cells: Iterable[Cell], targets: Targets) -> dict[str, tuple[Site, list[WorkItem]]]:
    """Return the sites of cells by name, each with its work items in the order of the cells."""
    sites: dict[str, tuple[Site, list[WorkItem]]] = {}
    scripts: dict[Path, Payload] = {}
    for cell in cells:
        name, path = cell.environment.name, cell.repro.path
        if name not in sites:
            sites[name] = (_site(name, targets), [])
        if path not in scripts:
            scripts[path] = Payload.pack(path)
        sites[name][1].append(WorkItem(scripts[path], cell.variant.name, cell.strategy, cell.device))
    return sites


def _site(name: str, targets: Targets) -> Site:
    if targets.python is not None:
        return Site(name, python=targets.python)
    stack = targets.known[name]
    return Site(name, stack, Payload.pack(stack.lock))


def _result(cell: Cell, outcome: TaskOutcome, runs: Path) -> CellResult:
    """Return the result of a cell, and unpack its logs on this machine if they were sent."""
    if isinstance(outcome, LostTask):
        return CellResult(cell, Verdict.INFRA, outcome.reason)
    if isinstance(outcome, MissingEnvironment):
        reason = outcome.environment.broken or ""
        return CellResult(replace(cell, environment=outcome.environment), Verdict.UNAVAILABLE, reason)
    result = outcome.result
    if outcome.logs is not None:
        with contextlib.suppress(OSError):  # on a full disk the logs are lost, not the result
            unpack_logs(outcome.logs, runs)
    return replace(
        result,
        cell=replace(result.cell, repro=cell.repro, variant=cell.variant),
        reason=result.reason.replace(str(outcome.base), str(runs)),
        observation=result.observation and _moved(result.observation, outcome.base, runs),
    )


def _moved(observation: Observation, base: Path, runs: Path) -> Observation:
    """Return an observation with its logs moved to another folder."""
    processes = tuple(
        replace(process, log=process.log and _moved_path(process.log, base, runs)) for process in observation.processes
    )
    return replace(observation, processes=processes, folder=_moved_path(observation.folder, base, runs))


def _moved_path(path: Path, base: Path, runs: Path) -> Path:
    return runs / path.relative_to(base) if path.is_relative_to(base) else path
