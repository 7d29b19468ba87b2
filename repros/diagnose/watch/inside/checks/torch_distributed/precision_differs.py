"""All ranks of a replicated module compute in one precision.

## What it does
Reports two ranks of a DistributedDataParallel that are wrapped with parameters of different dtypes, or whose forwards
end under autocast on one rank and without it, or in another dtype, on the other. The process outside compares.

## Why is this bad?
The mean of the gradients mixes precisions, and a failure of one rank's precision (an overflow in float16) reaches all
ranks.

## Example
`torch.autocast(device, enabled=rank == 0)` around the forward.

## Known misses
An autocast inside the wrapped module's own forward. Passes without gradients or under `no_sync`.

## Cost
One query of autocast's state, and one event, for each inspected forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.replicas import Replica
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module

CHECKS = (Check("precision_differs", "ranks compute in different dtypes"),)


def listen(watch: Watch) -> None:
    """Attach the check."""

    def write(key: list[object], number: int, precision: str) -> None:
        if watch.is_enabled("precision_differs"):
            text = "the ranks of a DistributedDataParallel compute in different precision"
            details = {"what": "precision", "key": key, "number": number, "value": precision, "text": text}
            watch.events.write("fact", check="precision_differs", place=user_location(), **details)

    def wrapping(module: Module, key: list[object]) -> None:
        dtypes = {
            str(parameter.dtype).replace("torch.", "") for parameter in module.parameters() if parameter.requires_grad
        }
        write([*key, "parameters"], 0, " and ".join(sorted(dtypes)))

    def prepared(replica: Replica) -> None:
        if watch.is_due(replica.preparations):
            write(replica.key, replica.preparations, _autocast())

    watch.listen("wrapping", wrapping)
    watch.listen("prepared", prepared)


def _autocast() -> str:
    """Return the devices with autocast enabled, and its dtypes."""
    import torch

    enabled = []
    for device in ("cuda", "cpu"):
        try:
            is_on, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        except (AttributeError, TypeError):  # before torch 2.4
            is_on = torch.is_autocast_enabled() if device == "cuda" else torch.is_autocast_cpu_enabled()
            dtype = torch.get_autocast_gpu_dtype() if device == "cuda" else torch.get_autocast_cpu_dtype()
        if is_on:
            enabled.append(f"autocast to {dtype} on {device}".replace("torch.", ""))
    return " and ".join(enabled) or "no autocast"
