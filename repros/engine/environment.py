"""The environments that cells run in: made if they are missing, then probed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros import environments
from repros.engine.plan import CellSpec, stack_names
from repros.engine.probe import ProbeError, probe
from repros.environments.uv import Say
from repros.model import Device, Environment, Repro, Stack
from repros.stacks import stack
from repros.stacks.lock import read_lock

_GPUS = Path("/proc/driver/nvidia/gpus")
"""The folder in which NVIDIA's driver lists its devices."""


@dataclass(frozen=True)
class Where:
    """The environments to run on: stacks by name, or the user's own interpreter."""

    stacks: tuple[str, ...] = ()
    """Names of stacks; `home` stands for each repro's own."""
    python: Path | None = None


def prepare(specs: Sequence[CellSpec], where: Where, say: Say) -> Callable[[Repro], Sequence[Environment]]:
    """Make and probe every environment that the specs need; return a function from a repro to its environments.

    A stack whose lock meets the requirements of none of its specs is not made, because nothing could run on it.

    Raises:
        UnknownNameError: an unknown stack.
        ProbeError: the user's own interpreter does not answer.
    """
    sim = any(spec.device is Device.SIM for spec in specs)
    if where.python is not None:
        own = _probe(where.python, None, sim=sim, say=say)
        return lambda _: [own]
    names = dict.fromkeys(name for spec in specs for name in stack_names(spec.repro, where.stacks))
    made = {}
    for name in names:
        locked = locked_environment(stack(name))
        here = (spec for spec in specs if name in stack_names(spec.repro, where.stacks))
        useful = any(not locked.unmet((*spec.variant.requires, *spec.repro.dependencies)) for spec in here)
        made[name] = _make(stack(name), sim=sim, say=say) if useful else locked
    return lambda repro: [made[name] for name in stack_names(repro, where.stacks)]


def _make(wanted: Stack, *, sim: bool, say: Say) -> Environment:
    """Make and probe a stack's environment; if that fails, the environment is `broken` and its cells unavailable."""
    try:
        python = environments.ensure(wanted, say)
        return _probe(python, wanted.name, sim=sim, say=say)
    except (environments.EnvironmentFailedError, ProbeError) as error:
        return Environment(wanted.name, Path(), wanted.python, {}, broken=str(error), stack=wanted.name)


def _probe(python: Path, stack_name: str | None, *, sim: bool, say: Say) -> Environment:
    """Probe an environment; announce first if that may compile the simulated accelerator, which takes a minute."""
    if sim:
        name = stack_name or python
        say(f"looking at {name} (the first time, its simulated accelerator is compiled: a minute or so)")
    return probe(python, stack_name, sim=sim)


def locked_environment(stack: Stack) -> Environment:
    """Return a stack's environment as its lock describes it, even if it has not been made."""
    versions = {pin.name: pin.version for pin in read_lock(stack.lock).values()}
    gpus = len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0
    counts = {Device.CPU: sys.maxsize, Device.SIM: sys.maxsize, Device.CUDA: gpus}
    return Environment(stack.name, Path(), stack.python, versions, counts, stack=stack.name)
