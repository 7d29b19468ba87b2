"""A script on stacks, one after another: made ready, run within walls, seen, and compared with the catalogue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from repros.engine.environment import Targets, prepare
from repros.engine.environments.extended import ExtendedStack, VersionChange
from repros.engine.environments.store import short_name
from repros.engine.judge import judge
from repros.engine.launch import supervise
from repros.engine.plan import plan
from repros.model import Cell, Environment, Launch, Observation, Repro, Unavailable
from repros.model.errors import ReprosError
from repros.scripts.try_.cell import as_spec
from repros.scripts.try_.known import Known, find_known
from repros.scripts.try_.needs import Needs, find_lacking, find_missing, find_other_releases
from repros.scripts.try_.orphans import adopted
from repros.scripts.try_.program import Program
from repros.scripts.try_.script import Script
from repros.scripts.try_.sight import Sight, Status, see
from repros.scripts.try_.start import Limits, Options, Start, Walls


@dataclass(frozen=True)
class Task:
    """What to run."""

    script: Program
    needs: Needs
    arguments: tuple[str, ...]
    options: Options
    limits: Limits
    walls: Walls

    @property
    def python_script(self) -> Script:
        """The program where it is known to be a script, and no command."""
        assert isinstance(self.script, Script), "a command has no source"
        return self.script

    def start(self) -> Start:
        """Return what starts the program for one run."""
        return Start(self.script, self.arguments, self.limits, self.walls, self.options)


@dataclass(frozen=True)
class Attempt:
    """A script's run on one stack."""

    stack: str
    python: str
    """The version of Python there."""
    versions: Mapping[str, str]
    """Those of the packages that the script needs, and of what `wanted` has changed, as they are installed."""
    sight: Sight
    other_releases: tuple[str, ...] = ()
    """What the script asks for and the stack has in another release."""
    wanted: tuple[str, ...] = ()
    """The requirements by which the stack was extended; none if it is the stack itself."""
    changes: tuple[VersionChange, ...] = ()
    """What that has changed."""
    lacks: tuple[str, ...] = ()
    """Requirements without which the script did not run, or an import in it has failed."""
    known: Known | None = None
    """None if nothing ran."""
    seconds: float = 0.0
    folder: Path | None = None
    """The folder of its logs."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was seen that is known or wrong."""
        known = self.known is not None and (self.known.match.candidates or self.known.findings)
        return self.sight.status is Status.CLEAN and not known


def attempt(
    task: Task,
    catalogue: Iterable[Repro],
    where: Targets,
    runs: Path,
    report_progress: Callable[[str], None] = lambda _: None,
    begins: Callable[[], None] = lambda: None,
) -> Iterator[Attempt]:
    """Run a script on each stack and yield what was seen as soon as it is known.

    An interruption ends all processes of the script, and is passed on.

    Args:
        task: what to run.
        catalogue: the documented failures.
        where: the stacks.
        runs: folder for the logs.
        report_progress: receives lines of progress.
        begins: called before the script runs for the first time.

    Raises:
        ReprosError: there is no such stack.
    """
    has_begun = False
    spec = as_spec(task.script.name, task.needs, task.options, task.limits)
    with prepare([spec], where, report_progress) as environments:
        for item in plan([spec], environments):
            cell, why = place(task, item)
            extended = _extended(where, cell)
            if why is not None:
                yield _attempt(task, cell.environment, Sight(Status.NOT_RUN, None, note=why), extended)
            else:
                if not has_begun:
                    begins()
                has_begun = True
                report_progress(f"running on {cell.environment.name}")
                yield _run(task, cell, runs / short_name(cell.environment.name), catalogue, extended)


def _extended(where: Targets, cell: Cell) -> ExtendedStack | None:
    """Return the stack with requirements that a cell runs on; None if it is a stack as it is."""
    stack = where.known.get(cell.environment.name)
    return stack if isinstance(stack, ExtendedStack) else None


def place(task: Task, item: Cell | Unavailable) -> tuple[Cell, str | None]:
    """Return a planned cell, and why the script cannot run there, if so."""
    cell = item.cell if isinstance(item, Unavailable) else item
    why = None if cell.environment.broken else _lacking(task, cell.environment)
    return cell, why or (item.reason if isinstance(item, Unavailable) else None)


def _lacking(task: Task, environment: Environment) -> str | None:
    lacking = find_lacking(task.needs, environment)
    return f"{environment.name} lacks {', '.join(lacking.values())}, which the script needs" if lacking else None


def _run(task: Task, cell: Cell, folder: Path, catalogue: Iterable[Repro], extended: ExtendedStack | None) -> Attempt:
    start = task.start()
    observation = _observe(cell, folder, start)
    sight = see(judge(cell, observation), start.folder)
    known = None
    try:
        known = find_known(observation, catalogue, cell.environment, start.folder)
    except ReprosError as error:  # it wrote no text, which is no reason to hide what was seen
        sight = _with_note(sight, str(error))
    return _attempt(task, cell.environment, sight, extended, known, observation)


def _observe(cell: Cell, folder: Path, start: Start) -> Observation:
    """Run a cell in a thread, so that an interruption reaches this one, and ends the cell's processes at once."""
    stop = threading.Event()
    with adopted(), ThreadPoolExecutor(1) as pool:
        running = pool.submit(supervise.run, cell, folder, start, Launch.COLD, stop)
        try:
            return running.result()
        finally:
            stop.set()


def _attempt(
    task: Task,
    environment: Environment,
    sight: Sight,
    extended: ExtendedStack | None,
    known: Known | None = None,
    observation: Observation | None = None,
) -> Attempt:
    found = environment.versions
    changes = extended.changes if extended else ()
    names = dict.fromkeys(("torch", *task.needs.packages, *(change.name for change in changes)))
    return Attempt(
        environment.name,
        environment.python_version,
        {name: found[name] for name in names if name in found},
        sight,
        find_other_releases(task.needs, environment),
        tuple(map(str, extended.wanted)) if extended else (),
        changes,
        _lacks(task, environment, sight),
        known,
        observation.seconds if observation else 0.0,
        observation.folder if observation else None,
    )


def _lacks(task: Task, environment: Environment, sight: Sight) -> tuple[str, ...]:
    if sight.status is Status.NOT_RUN:
        return () if environment.broken else tuple(find_lacking(task.needs, environment))
    missing = find_missing(((link.type, link.message) for link in sight.chain), environment)
    return (missing,) if missing else ()


def _with_note(sight: Sight, note: str) -> Sight:
    return replace(sight, note="; ".join(filter(None, (sight.note, note))))
