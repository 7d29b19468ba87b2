"""Memory statistics and limits, in the form of CUDA's caching allocator.

The numbers come from the simulated allocator, which keeps the books of CUDA's (csrc/runtime/segments.h).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import extension

_NO_HISTORY = "the history of a simulated GPU's memory is not kept"
_raw_blocks: dict[int, Any] = {}
"""Allocations of `torch.cuda.caching_allocator_alloc`, by address."""
_ZERO = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for memory."""
    return {
        "_cuda_memoryStats": memory_stats,
        "_cuda_resetPeakMemoryStats": lambda device: extension.get().reset_peak(device),
        "_cuda_resetAccumulatedMemoryStats": lambda device: extension.get().reset_accumulated(device),
        "_cuda_setMemoryFraction": _set_fraction,
        "_cuda_getMemoryFraction": lambda device: _limit(device) / extension.get().device_bytes(),
        "_cuda_emptyCache": lambda: extension.get().empty_cache(),
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
        "_cuda_record_memory_history": _record_history,
        "_cuda_record_memory_history_legacy": _record_history,
        "_cuda_recordMemoryHistory": _record_history,
        "_cuda_attach_out_of_memory_observer": lambda _observer: _warn(f"this observer is not called: {_NO_HISTORY}"),
        "_cuda_cudaCachingAllocator_raw_alloc": _raw_alloc,
        "_cuda_cudaCachingAllocator_raw_delete": _raw_delete,
    }


def _record_history(enabled: Any = None, *_: Any, **__: Any) -> None:
    if enabled:
        _warn(f"torch.cuda.memory._snapshot() stays empty: {_NO_HISTORY}")


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)


def _raw_alloc(size: int, _stream: int) -> int:
    """Allocate bytes on the current device; return their address."""
    torch = sys.modules["torch"]
    block = torch.empty(size, dtype=torch.uint8, device="cuda")
    if size:
        _raw_blocks[block.data_ptr()] = block
    return int(block.data_ptr())


def _raw_delete(address: int) -> None:
    if address and _raw_blocks.pop(address, None) is None:
        raise RuntimeError(f"invalid device pointer: {address:#x}")


def memory_stats(device: int) -> dict[str, Any]:
    """Return the statistics of a device, nested as `torch._C._cuda_memoryStats` does."""
    usage = extension.get().memory(device)
    blocks, sizes = _pools(usage["blocks"]), _pools(usage["bytes"])
    return {
        "num_alloc_retries": usage["retried"],
        "num_ooms": usage["refused"],
        "max_split_size": -1,
        "num_sync_all_streams": extension.get().cache_emptied(),
        "num_device_alloc": usage["taken"],
        "num_device_free": usage["given"],
        "allocation": blocks,
        "segment": _pools(usage["segments"]),
        "active": blocks,
        "inactive_split": _pools(usage["inactive"]),
        "allocated_bytes": sizes,
        "reserved_bytes": _pools(usage["reserved"]),
        "active_bytes": sizes,
        "requested_bytes": _pools(usage["requested"]),
        "inactive_split_bytes": _pools(usage["inactive_bytes"]),
        "oversize_allocations": dict(_ZERO),
        "oversize_segments": dict(_ZERO),
    }


def _pools(counts: Any) -> dict[str, dict[str, int]]:
    """Return a statistic of all, small and large blocks by the names of their pools."""
    return dict(zip(("all", "small_pool", "large_pool"), counts))  # `strict` is from Python 3.10


def memory_info(device: int) -> tuple[int, int]:
    """Return a device's free bytes and its total bytes."""
    reserved, total = extension.get().memory(device)["reserved"][0]["current"], int(extension.get().device_bytes())
    return max(0, total - int(reserved)), total


def _limit(device: int) -> int:
    return int(extension.get().memory(device)["limit"])


def _set_fraction(fraction: float, device: int) -> None:
    extension.get().set_limit(device, int(fraction * extension.get().device_bytes()))
