"""Memory statistics and limits, in the form of CUDA's caching allocator.

The numbers come from the simulated allocator. It caches nothing, so the reserved bytes are the allocated ones.
"""

from __future__ import annotations

from typing import Any

from . import extension

_ZERO = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for memory."""
    return {
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetPeakMemoryStats": lambda device: extension.get().reset_peak(device),
        "_cuda_resetAccumulatedMemoryStats": lambda device: extension.get().reset_accumulated(device),
        "_cuda_setMemoryFraction": _set_fraction,
        "_cuda_getMemoryFraction": lambda device: _limit(device) / extension.get().device_bytes(),
        "_cuda_emptyCache": lambda: None,
        "_host_emptyCache": lambda: None,
        "_cuda_memorySnapshot": lambda *_: {"segments": [], "device_traces": [], "allocator_settings": {}},
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_set_allocator_settings": lambda _settings: None,
        "_accelerator_setAllocatorSettings": lambda _settings: None,
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_cudaCachingAllocator_enable": lambda _value: None,
        "_cuda_hostMemoryStats": dict,
        "_cuda_resetPeakHostMemoryStats": lambda: None,
        "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_record_memory_history": lambda *_, **__: None,
        "_cuda_record_memory_history_legacy": lambda *_, **__: None,
        "_cuda_recordMemoryHistory": lambda *_, **__: None,
        "_cuda_attach_out_of_memory_observer": lambda _observer: None,
    }


def memory_stats(device: int) -> dict[str, Any]:
    """Return the statistics of a device, nested as `torch._C._cuda_memoryStats` does."""
    usage = extension.get().memory(device)
    blocks, sizes = _pools(usage["blocks"]), _pools(usage["bytes"])
    nothing = _pools({"current": 0, "peak": 0, "allocated": 0})
    freed = usage["blocks"]["allocated"] - usage["blocks"]["current"]
    return {
        "num_alloc_retries": 0,
        "num_ooms": usage["refused"],
        "max_split_size": -1,
        "num_sync_all_streams": 0,
        "num_device_alloc": usage["blocks"]["allocated"],
        "num_device_free": freed,
        "allocation": blocks,
        "segment": blocks,
        "active": blocks,
        "inactive_split": nothing,
        "allocated_bytes": sizes,
        "reserved_bytes": sizes,
        "active_bytes": sizes,
        "requested_bytes": _pools(usage["requested"]),
        "inactive_split_bytes": nothing,
        "oversize_allocations": dict(_ZERO),
        "oversize_segments": dict(_ZERO),
    }


def _pools(counts: Any) -> dict[str, dict[str, int]]:
    """Return a count for the pools of small and of large blocks, which are not kept apart, and for both."""
    total = {**counts, "freed": counts["allocated"] - counts["current"]}
    return {"all": dict(total), "small_pool": dict(_ZERO), "large_pool": dict(total)}


def memory_info(device: int) -> tuple[int, int]:
    """Return a device's free bytes and its total bytes."""
    usage = extension.get().memory(device)
    return max(0, int(usage["limit"] - usage["bytes"]["current"])), int(extension.get().device_bytes())


def _limit(device: int) -> int:
    return int(extension.get().memory(device)["limit"])


def _set_fraction(fraction: float, device: int) -> None:
    extension.get().set_limit(device, int(fraction * extension.get().device_bytes()))
