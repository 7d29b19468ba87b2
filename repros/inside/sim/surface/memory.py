"""Memory statistics and limits of `torch.sim`.

The numbers come from the allocator. It caches nothing, so the reserved bytes are the allocated bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .extension import existing_device_index, get_extension

if TYPE_CHECKING:
    from .extension import Device


def memory_allocated(device: Device = None) -> int:
    """Return the bytes that tensors on the device use now."""
    return int(_usage(device)["bytes"]["current"])


def max_memory_allocated(device: Device = None) -> int:
    """Return the most bytes in use at once since the start or the last reset."""
    return int(_usage(device)["bytes"]["peak"])


def memory_reserved(device: Device = None) -> int:
    """Return the reserved bytes: those that are allocated."""
    return memory_allocated(device)


def max_memory_reserved(device: Device = None) -> int:
    """Return the most bytes reserved at once."""
    return max_memory_allocated(device)


def memory_stats(device: Device = None) -> dict[str, int]:
    """Return the counts under the names of `torch.cuda.memory_stats`."""
    usage = _usage(device)
    stats = {"num_ooms": int(usage["refused"]), "num_alloc_retries": 0}
    for name, counts in (
        ("allocation", usage["blocks"]),
        ("allocated_bytes", usage["bytes"]),
        ("reserved_bytes", usage["bytes"]),
    ):
        stats |= {f"{name}.all.{what}": int(counts[what]) for what in ("current", "peak", "allocated")}
        stats[f"{name}.all.freed"] = int(counts["allocated"] - counts["current"])
    return stats


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Return the free bytes and the total bytes."""
    usage = _usage(device)
    return max(0, int(usage["limit"] - usage["bytes"]["current"])), int(usage["limit"])


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limit this process to a part of the device's memory; a larger allocation raises torch.OutOfMemoryError.

    Raises:
        TypeError: the fraction is not a float.
        ValueError: the fraction is not between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    get_extension().set_limit(existing_device_index(device), int(fraction * get_extension().device_bytes()))


def reset_peak_memory_stats(device: Device = None) -> None:
    """Reset the peak to the bytes in use now."""
    get_extension().reset_peak(existing_device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Restart the counts of allocated and freed bytes."""
    get_extension().reset_accumulated(existing_device_index(device))


def empty_cache() -> None:
    """Do nothing: nothing is cached."""


OutOfMemoryError: type[RuntimeError] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


def _usage(device: Device) -> Any:
    return get_extension().memory(existing_device_index(device))
