"""All ranks of a replicated module compute in one precision.

Speaks: when two ranks of a DistributedDataParallel are wrapped with parameters of different dtypes, or its forward ends
under autocast on one rank and not, or in another dtype, on the other. The process outside compares.
Silent: about an autocast inside the wrapped module's own forward; about passes without gradients and under `no_sync`.
Costs: a look at autocast's state in the forwards that are due, and a line for each that is.
"""

from __future__ import annotations

from typing import Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.place import user_place
from repros.diagnose.watch.inside.watch import Watch

CHECKS = (Check("precision_differs", "ranks compute in different dtypes"),)


def listen(watch: Watch) -> None:
    """Attach the check."""

    def write(key: list[Any], number: int, precision: str) -> None:
        if watch.wants("precision_differs"):
            text = "the ranks of a DistributedDataParallel compute in different precision"
            details = {"what": "precision", "key": key, "number": number, "value": precision, "text": text}
            watch.events.write("fact", check="precision_differs", place=user_place(), **details)

    def wrapping(module: Any, key: list[Any]) -> None:
        dtypes = {
            str(parameter.dtype).replace("torch.", "") for parameter in module.parameters() if parameter.requires_grad
        }
        write([*key, "parameters"], 0, " and ".join(sorted(dtypes)))

    def prepared(replica: Any) -> None:
        if watch.is_due(replica.preparations):
            write(replica.key, replica.preparations, _autocast())

    watch.listen("wrapping", wrapping)
    watch.listen("prepared", prepared)


def _autocast() -> str:
    """Return where autocast is on, and in which dtypes."""
    import torch

    found = []
    for device in ("cuda", "cpu"):
        try:
            is_on, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        except (AttributeError, TypeError):  # before torch 2.4
            is_on = torch.is_autocast_enabled() if device == "cuda" else torch.is_autocast_cpu_enabled()
            dtype = torch.get_autocast_gpu_dtype() if device == "cuda" else torch.get_autocast_cpu_dtype()
        if is_on:
            found.append(f"autocast to {dtype} on {device}".replace("torch.", ""))
    return " and ".join(found) or "no autocast"
