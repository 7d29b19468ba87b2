"""The engine on a cluster: plans here, runs on the nodes, and gives the results as the engine on one machine does."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import ray
from ray.exceptions import RayError

from repros.cluster.crew import Crew, first_line, most_gpus
from repros.cluster.dispatch import Dispatch, Finding, Impossible, Lost
from repros.cluster.node import Orders, Site, Work
from repros.cluster.parcel import Parcel, unpack_logs
from repros.cluster.placement import Job
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
        """Begin without a process on any node; run at most so many cells side by side, on all nodes together."""
        self._jobs = jobs
        self.gpus: int | None = most_gpus()
        self._observer = Observer()
        self._crew = Crew(self._report_progress)
        self._tickets = map(str, itertools.count(1))

    def run(
        self, specs: Sequence[CellSpec], where: Targets, out: Path, observer: Observer, options: RunOptions
    ) -> Generator[CellResult, None, None]:
        """Run cell specs; :class:`repros.engine.run_options.Engine` explains the arguments."""
        self._observer = observer
        if not self._crew.members:
            self._crew.gather()
        planned = plan(specs, self._environments(specs, where), options.require)
        observer.planned(planned)
        runs = new_log_folder(out)
        yield from (
            CellResult(item.cell, Verdict.UNAVAILABLE, item.reason) for item in planned if not isinstance(item, Cell)
        )
        cells = {number: item for number, item in enumerate(planned) if isinstance(item, Cell)}
        jobs = [
            Job(number, cell.environment.name, needs(cell, options.timings(cell))) for number, cell in cells.items()
        ]
        dispatch = Dispatch(
            self._crew,
            jobs,
            _sites(cells.values(), where),
            Orders(options.launch, options.repeat, options.keep_environments),
            jobs=self._jobs,
            report_progress=observer.report_progress,
            started=lambda job: observer.started(cells[job.number]),
        )
        try:
            for job, finding in dispatch.findings(self._tickets):
                yield _result(cells[job.number], finding, runs)
        except KeyboardInterrupt:
            with contextlib.suppress(RayError):
                yield from (_result(cells[job.number], finding, runs) for job, finding in dispatch.settle_now())
            raise

    def close(self) -> None:
        """End everything on every node."""
        self._crew.close()

    def _report_progress(self, line: str) -> None:
        self._observer.report_progress(line)

    def _environments(self, specs: Sequence[CellSpec], where: Targets) -> Callable[[Repro], Sequence[Environment]]:
        """Return the environments of each repro: a stack's as its lock describes it, the user's own as a node does."""
        repros = {spec.repro.id: spec.repro for spec in specs}
        if where.python is not None:
            own = self._describe(where.python)
            return lambda _: [own]
        stacks = {id_: where.stacks_of(repro) for id_, repro in repros.items()}
        gpus = {Device.CUDA: self.gpus or 0}
        known = {stack.name: locked_environment(stack) for found in stacks.values() for stack in found}
        offered = {name: replace(each, counts={**each.counts, **gpus}) for name, each in known.items()}
        return lambda repro: [offered[stack.name] for stack in stacks[repro.id]]

    def _describe(self, python: Path) -> Environment:
        """Return what one of the nodes finds in the environment of an interpreter.

        Raises:
            ReprosError: it is not there, or cannot run cells; or the node is lost meanwhile.
        """
        member = next(iter(self._crew.members.values()))
        try:
            found: Environment | str = ray.get(member.process.describe.remote(python))
        except RayError as error:
            raise ReprosError(f"the node {member.name} is lost: {first_line(error)}.") from error
        if isinstance(found, str):
            raise ReprosError(f"on the node {member.name}: {found}")
        return found


def _sites(cells: Iterable[Cell], where: Targets) -> dict[str, tuple[Site, list[Work]]]:
    """Return the sites of the cells by name, each with its works in the order of the cells."""
    sites: dict[str, tuple[Site, list[Work]]] = {}
    scripts: dict[Path, Parcel] = {}
    for cell in cells:
        name, path = cell.environment.name, cell.repro.path
        if name not in sites:
            sites[name] = (_site(name, where), [])
        if path not in scripts:
            scripts[path] = _pack(path)
        sites[name][1].append(Work(scripts[path], cell.variant.name, cell.strategy, cell.device))
    return sites


def _site(name: str, where: Targets) -> Site:
    if where.python is not None:
        return Site(name, python=where.python)
    stack = where.known[name]
    return Site(name, stack, _pack(stack.lock))


def _pack(file: Path) -> Parcel:
    try:
        return Parcel.pack(file)
    except OSError as error:
        raise ReprosError(f"{file} cannot be read for the nodes ({error.strerror}).") from error


def _result(cell: Cell, finding: Finding, runs: Path) -> CellResult:
    """Return the result of a cell, with its logs on this machine if they came back."""
    if isinstance(finding, Lost):
        return CellResult(cell, Verdict.INFRA, finding.reason)
    if isinstance(finding, Impossible):
        reason = finding.environment.broken or ""
        return CellResult(replace(cell, environment=finding.environment), Verdict.UNAVAILABLE, reason)
    found = finding.result
    if finding.logs is not None:
        with contextlib.suppress(OSError):  # a full disk costs the logs, not the result
            unpack_logs(finding.logs, runs)
    return replace(
        found,
        cell=replace(found.cell, repro=cell.repro, variant=cell.variant),
        reason=found.reason.replace(str(finding.base), str(runs)),
        observation=found.observation and _moved(found.observation, finding.base, runs),
    )


def _moved(seen: Observation, base: Path, runs: Path) -> Observation:
    """Return an observation whose logs lie below another folder."""
    processes = tuple(
        replace(process, log=process.log and _moved_path(process.log, base, runs)) for process in seen.processes
    )
    return replace(seen, processes=processes, folder=_moved_path(seen.folder, base, runs))


def _moved_path(path: Path, base: Path, runs: Path) -> Path:
    return runs / path.relative_to(base) if path.is_relative_to(base) else path
