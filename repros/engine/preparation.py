"""Preparation of a run's stacks in the background: while one is installed, another one's accelerator is compiled.

Two threads, since both kinds of work keep the machine busy and several of one kind would only share it. The first
installs the environments, in the order in which the run needs them, and plans the cells that need no accelerator. The
second compiles the simulated accelerators and plans the cells on `sim`. Cells of a part run as soon as it is planned.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Self

from repros.engine.environment import Targets, locked_environment, prepare
from repros.engine.environments.processes import Processes
from repros.engine.environments.use import hold
from repros.engine.environments.uv import ReportProgress, watch_uv
from repros.engine.plan import CellSpec, plan
from repros.model import Cell, Device, Environment, Unavailable

Plan = Sequence[Cell | Unavailable]

_CLEANUP_TIMEOUT = 5.0
"""Seconds for an interrupted installation to clean up; a running compiler is not waited for."""
_NICENESS = 10
"""Lower priority of installers and compilers, so that cells that run at the same time keep their deadlines."""


@dataclass(frozen=True)
class Part:
    """Cells that can start, since what they need is prepared."""

    cells: Plan
    ready: str | None = None
    """Name of the stack whose last part this is; None if more follow."""


class Preparation:
    """The preparation of the stacks of a run; a context manager that holds their environments."""

    def __init__(self, specs: Sequence[CellSpec], targets: Targets, report_progress: ReportProgress) -> None:
        """Find the stacks, without making one.

        Args:
            specs: the result of :func:`repros.engine.plan.select`.
            targets: the stacks to run on.
            report_progress: receives lines of progress, from the threads.

        Raises:
            UnknownNameError: an unknown stack.
        """
        stacks = {spec.repro.id: targets.stacks_of(spec.repro) for spec in specs}
        self.expected = plan(specs, lambda repro: [locked_environment(stack) for stack in stacks[repro.id]])
        """The plan if all environments can be made as they are locked."""
        self.stacks = {stack.name: stack for of_repro in stacks.values() for stack in of_repro}
        """The stacks by name, in the order in which they are prepared."""
        self._specs = {
            name: [spec for spec in specs if stack in stacks[spec.repro.id]] for name, stack in self.stacks.items()
        }
        self._report_progress = report_progress
        self._processes = Processes()
        self._to_compile: SimpleQueue[str | None] = SimpleQueue()
        self._installer: threading.Thread | None = None
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Hold the environments against removal by other processes."""
        self._held.enter_context(hold(self.stacks.values()))
        return self

    def __exit__(self, *_: object) -> None:
        """End the installation that runs, and release the environments."""
        self._processes.stop()
        if self._installer is not None:
            self._installer.join(_CLEANUP_TIMEOUT)
        self._held.close()

    def start(self, send: Callable[[Part | BaseException], object]) -> None:
        """Begin to prepare.

        Args:
            send: receives each part, or what failed, from the threads.
        """
        # Daemons, since nothing ends a compiler that has begun.
        self._installer = threading.Thread(target=self._run, args=(self._install_all, send), daemon=True)
        self._installer.start()
        threading.Thread(target=self._run, args=(self._compile_all, send), daemon=True).start()

    def _run(self, act: Callable[[], Iterator[Part]], send: Callable[[Part | BaseException], object]) -> None:
        watch_uv.set(self._processes.watch)
        if sys.platform == "linux":  # elsewhere it would apply to the whole process
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        try:
            for part in act():
                send(part)
        except CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the parts are taken
            send(error)

    def _install_all(self) -> Iterator[Part]:
        """Install each environment; yield its cells that need no accelerator, or all if it is broken."""
        try:
            for name, specs in self._specs.items():
                others = [spec for spec in specs if spec.device is not Device.SIM]
                environment = self._prepare(name, others) if others else None
                if environment is not None:
                    is_last = len(others) == len(specs) or environment.broken is not None
                    yield _part(specs if is_last else others, environment, name if is_last else None)
                    if is_last:
                        continue
                self._to_compile.put(name)
        finally:
            self._to_compile.put(None)

    def _compile_all(self) -> Iterator[Part]:
        """Compile the accelerator of each environment, and yield its cells on `sim`."""
        while (name := self._to_compile.get()) is not None:
            specs = [spec for spec in self._specs[name] if spec.device is Device.SIM]
            yield _part(specs, self._prepare(name, specs), name)

    def _prepare(self, name: str, specs: Sequence[CellSpec]) -> Environment:
        self._processes.check()
        where = Targets((name,), known={name: self.stacks[name]})
        with prepare(specs, where, self._report_progress) as environments:
            return environments(specs[0].repro)[0]


def _part(specs: Sequence[CellSpec], environment: Environment, ready: str | None) -> Part:
    return Part(plan(specs, lambda _: [environment]), ready)
