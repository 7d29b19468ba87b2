"""The environments of cells: made if missing, then probed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

from repros.engine import environments
from repros.engine.environments.builds import count_gpus
from repros.engine.environments.use import hold
from repros.engine.environments.uv import ReportProgress
from repros.engine.plan import CellSpec, stack_names, why_unavailable
from repros.engine.probe import ProbeError, probe
from repros.engine.stacks import load_stacks, pick
from repros.model import Device, Environment, Repro, Stack


@dataclass(frozen=True)
class Targets:
    """The environments to run on: stacks by name, or the user's own interpreter."""

    stacks: tuple[str, ...] = ()
    """Names of stacks; `home` means the reference stack of each repro."""
    python: Path | None = None
    known: Mapping[str, Stack] = field(default_factory=load_stacks, repr=False)
    """All stacks by name; by default those of the package."""

    def stacks_of(self, repro: Repro) -> list[Stack]:
        """Return the stacks to run a repro on.

        Raises:
            UnknownNameError: an unknown stack.
        """
        return self.stacks_for(repro.home)

    def stacks_for(self, home: str) -> list[Stack]:
        """Return the stacks to run on, where `home` means the stack of this name.

        Raises:
            UnknownNameError: an unknown stack.
        """
        return [pick(self.known, name) for name in stack_names(home, self.stacks)]


@dataclass(frozen=True)
class PreparedStack:
    """A stack with its environment."""

    stack: Stack
    environment: Environment
    unavailable: str | None
    """Why the program cannot run there; None if it can."""


@contextlib.contextmanager
def prepare(
    specs: Sequence[CellSpec], targets: Targets, report_progress: ReportProgress, require: Sequence[Device] = ()
) -> Iterator[Callable[[Repro], Sequence[Environment]]]:
    """Make and probe the environments of specs; yield a function that maps a repro to its environments.

    The environments are held until the context ends. A stack whose lock meets the requirements of none of its specs is
    not made, because no cell could run on it.

    Args:
        specs: the result of :func:`repros.engine.plan.select`.
        targets: the environments.
        report_progress: receives lines of progress.
        require: devices to probe in addition to those of the specs.

    Raises:
        UnknownNameError: an unknown stack.
        ProbeError: the user's own interpreter does not answer.
    """
    sim = Device.SIM in {*require, *(spec.device for spec in specs)}
    if targets.python is not None:
        own = probe(targets.python, sim=sim, report_progress=report_progress)
        yield lambda _: [own]
        return
    stacks = {spec.repro.id: targets.stacks_of(spec.repro) for spec in specs}
    needed = {stack.name: stack for repro_stacks in stacks.values() for stack in repro_stacks}
    with hold(needed.values()):
        made = {}
        for name, stack in needed.items():
            needs = [
                (*spec.variant.requires, *spec.repro.dependencies) for spec in specs if stack in stacks[spec.repro.id]
            ]
            made[name] = _make_if_useful(stack, needs, sim=sim, report_progress=report_progress)
        yield lambda repro: [made[stack.name] for stack in stacks[repro.id]]


@contextlib.contextmanager
def prepare_stacks(
    stacks: Sequence[Stack],
    requirements: Sequence[Requirement],
    device: Device,
    ranks: int,
    report_progress: ReportProgress,
) -> Iterator[list[PreparedStack]]:
    """Make and probe the environments of stacks; yield them in the same order.

    No other process removes the environments until the context ends. A stack whose lock does not meet the requirements
    is not made; its environment is then the one that the lock describes.

    Args:
        stacks: the stacks.
        requirements: the packages that a program needs.
        device: the device that it runs on.
        ranks: the number of its ranks.
        report_progress: receives lines of progress.
    """
    with hold(stacks):
        made = [
            _make_if_useful(stack, [requirements], sim=device is Device.SIM, report_progress=report_progress)
            for stack in stacks
        ]
        yield [
            PreparedStack(stack, environment, why_unavailable(environment, requirements, device, ranks))
            for stack, environment in zip(stacks, made, strict=True)
        ]


def _make_if_useful(
    stack: Stack, needs: Iterable[Sequence[Requirement]], *, sim: bool, report_progress: ReportProgress
) -> Environment:
    """Make a stack's environment if its lock meets the requirements of something that is to run."""
    locked = locked_environment(stack)
    is_useful = any(not locked.unmet(requirements) for requirements in needs)
    return _make(stack, sim=sim, report_progress=report_progress) if is_useful else locked


def _make(wanted: Stack, *, sim: bool, report_progress: ReportProgress) -> Environment:
    """Make and probe a stack's environment; if that fails, the environment is `broken` and its cells unavailable."""
    try:
        python = environments.ensure(wanted, report_progress)
        return probe(python, wanted.name, sim=sim, report_progress=report_progress)
    except (environments.EnvironmentFailedError, ProbeError) as error:
        return Environment(wanted.name, Path(), wanted.python, {}, broken=str(error), stack=wanted.name)


def locked_environment(stack: Stack) -> Environment:
    """Return a stack's environment as its lock describes it, even if it has not been made."""
    versions = {pin.name: pin.version for pin in stack.pins.values()}
    counts = {Device.CPU: sys.maxsize, Device.SIM: sys.maxsize, Device.CUDA: count_gpus()}
    return Environment(stack.name, Path(), stack.python, versions, counts, stack=stack.name)
