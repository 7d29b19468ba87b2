"""Memory: what is in use on every device, and how much there is.

The numbers are those of the allocator. Nothing is cached, so what is reserved is what is allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .extension import ask, existing

if TYPE_CHECKING:
    from .extension import Device


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors on the device hold now."""
    return int(_of(device)["bytes"]["current"])


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes held at once since the start or the last reset."""
    return int(_of(device)["bytes"]["peak"])


def memory_reserved(device: Device = None) -> int:
    """Bytes held from the device: as many as are allocated."""
    return memory_allocated(device)


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes held from the device at once."""
    return max_memory_allocated(device)


def memory_stats(device: Device = None) -> dict[str, int]:
    """The counts under the names that `torch.cuda.memory_stats` uses."""
    of = _of(device)
    stats = {"num_ooms": int(of["refused"]), "num_alloc_retries": 0}
    for name, counts in (
        ("allocation", of["blocks"]),
        ("allocated_bytes", of["bytes"]),
        ("reserved_bytes", of["bytes"]),
    ):
        stats |= {f"{name}.all.{what}": int(counts[what]) for what in ("current", "peak", "allocated")}
        stats[f"{name}.all.freed"] = int(counts["allocated"] - counts["current"])
    return stats


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Bytes that are free, and bytes that there are."""
    of = _of(device)
    return max(0, int(of["limit"] - of["bytes"]["current"])), int(of["limit"])


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Lets this process use that part of the device's memory; beyond it is torch.OutOfMemoryError.

    Raises:
        ValueError: the fraction does not lie between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    ask().set_limit(existing(device), int(fraction * ask().device_bytes()))


def reset_peak_memory_stats(device: Device = None) -> None:
    """Makes the peak what is held now."""
    ask().reset_peak(existing(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Counts what was handed out and freed from now on."""
    ask().reset_accumulated(existing(device))


def empty_cache() -> None:
    """Nothing is cached."""


OutOfMemoryError: type[RuntimeError] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


def _of(device: Device) -> Any:
    return ask().memory(existing(device))
