"""Planning: select cell specs from the catalogue, then combine each with its environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement

from repros.model import Cell, Device, Environment, Repro, Unavailable, Variant
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError, refuse_unknown

_SIM_COLLECTIVES = Requirement("torch>=2.1")
"""The first torch in which the simulated accelerator has collectives: older c10d supports no further device types."""

HOME = "home"
"""A stack name that means the reference stack of each repro."""


class NothingToRunError(ReprosError):
    """A selection that names no cell."""


@dataclass(frozen=True)
class Selection:
    """Which part of the catalogue to run; an empty field selects everything."""

    repros: tuple[str, ...] = ()
    """Ids or slugs."""
    variants: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True)
class CellSpec:
    """A cell before it has an environment."""

    repro: Repro
    variant: Variant
    strategy: str
    device: Device


def select(catalogue: Catalogue, selection: Selection) -> list[CellSpec]:
    """Return every combination that the catalogue has and the selection names, in catalogue order.

    Raises:
        UnknownNameError: an unknown repro or strategy, or a variant that none of the selected repros has.
        NothingToRunError: a combination that does not exist, such as a strategy that the repro does not run under.
    """
    repros = [catalogue.find(name) for name in selection.repros] or list(catalogue)
    if not repros:
        raise NothingToRunError("the catalogue is empty; expected repro scripts at the given paths.")
    refuse_unknown("variant", selection.variants, [v.name for r in repros for v in r.variants])
    refuse_unknown("strategy", selection.strategies, [s for r in catalogue for s in r.strategies])
    specs = [spec for repro in dict.fromkeys(repros) for spec in _specs(repro, selection)]
    if not specs:
        offers = "; ".join(f"{r.id} runs under {', '.join(r.strategies)} on {', '.join(r.devices)}" for r in repros)
        raise NothingToRunError(f"nothing fits the selection: {offers}.")
    return specs


def _specs(repro: Repro, selection: Selection) -> Iterator[CellSpec]:
    for variant in repro.variants:
        if selection.variants and variant.name not in selection.variants:
            continue
        for strategy in variant.strategies:
            for device in variant.devices:
                if strategy in (selection.strategies or variant.strategies) and device in (
                    selection.devices or variant.devices
                ):
                    yield CellSpec(repro, variant, strategy, device)


def stack_names(home: str, names: Sequence[str]) -> list[str]:
    """Return the names of the stacks to run on, with `home` resolved and duplicates removed."""
    return list(dict.fromkeys(home if name == HOME else name for name in names))


def plan(
    specs: Sequence[CellSpec],
    environments: Callable[[Repro], Sequence[Environment]],
    require: Sequence[Device] = (),
) -> list[Cell | Unavailable]:
    """Return a cell for each spec on each of its environments; unavailable ones with the reason.

    Args:
        specs: the result of :func:`select`.
        environments: returns the environments that a repro runs in.
        require: devices that every environment must have.

    Raises:
        ReprosError: an environment lacks a required device, even if no cell needs it.
    """
    planned: list[Cell | Unavailable] = []
    for spec in specs:
        for environment in environments(spec.repro):
            _refuse_missing(require, environment)
            offered = environment.counts.get(spec.device, 0)
            processes = (
                max(1, min(spec.repro.processes, offered)) if spec.device is Device.CUDA else spec.repro.processes
            )
            cell = Cell(spec.repro, spec.variant, spec.strategy, spec.device, environment, processes)
            reason = _why_not_run(cell, offered)
            planned.append(Unavailable(cell, reason) if reason else cell)
    return planned


def _refuse_missing(required: Sequence[Device], environment: Environment) -> None:
    """Raise ReprosError for the first required device that an environment does not offer."""
    for device in required:
        why = environment.broken or environment.absent.get(device)
        if why or not environment.counts.get(device):
            raise ReprosError(f"{device} is required, but {why or 'there is none'} ({environment.name}).")


def why_unavailable(environment: Environment, needed: Sequence[Requirement], device: Device, ranks: int) -> str | None:
    """Return why nothing with these requirements can run in an environment; None if it can.

    Args:
        environment: the environment.
        needed: the packages that it needs.
        device: the device that it runs on.
        ranks: the number of its ranks.
    """
    if environment.broken:
        return environment.broken
    if unmet := environment.unmet(needed):
        return f"needs {unmet[0]}"
    if device in environment.absent:
        return environment.absent[device]
    if device is Device.SIM and ranks > 1 and (unmet := environment.unmet([_SIM_COLLECTIVES])):
        return f"{ranks} ranks on sim need {unmet[0]}"
    return None


def _why_not_run(cell: Cell, offered: int) -> str | None:
    """Return why a cell cannot be run, if it cannot."""
    needed = (*cell.variant.requires, *cell.repro.dependencies)
    if reason := why_unavailable(cell.environment, needed, cell.device, cell.processes):
        return reason
    if cell.device is Device.CUDA and offered < cell.repro.minimum:
        return f"needs {cell.repro.minimum} GPUs, this machine has {offered}"
    return None
