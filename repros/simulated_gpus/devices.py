"""The devices: their number, the current one, their properties, their generators."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from typing import Any

from . import extension
from .profiles import chosen_profile

_initialised_by: list[int] = []


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C` for devices."""
    return {
        "_cuda_init": _init,
        "_cuda_getDeviceCount": lambda: extension.get().device_count(),
        "_cuda_getDevice": lambda: extension.get().current_device(),
        "_cuda_setDevice": set_device,
        "_cuda_exchangeDevice": _exchange,
        "_cuda_maybeExchangeDevice": _maybe_exchange,
        "_cuda_isInBadFork": _is_in_bad_fork,
        "_cuda_synchronize": _synchronize,
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_hasPrimaryContext": lambda _device: bool(_initialised_by),
        "_cuda_lock_mutex": lambda: None,
        "_cuda_unlock_mutex": lambda: None,
        "_cuda_set_sync_debug_mode": _set_sync_debug_mode,
        "_cuda_get_sync_debug_mode": lambda: _sync_debug_mode[-1],
        "_cuda_sleep": lambda _cycles: None,
        "_CudaDeviceProperties": DeviceProperties,
    }


def _init() -> None:
    """Do what `THCPModule_initExtension` does (torch/csrc/cuda/Module.cpp)."""
    if extension.get().device_count() == 0:
        raise RuntimeError("No CUDA GPUs are available")
    if not _initialised_by:
        _initialised_by.append(os.getpid())
        extension.get().initialize_context()
        extension.get().poison_forks()
    cuda: Any = sys.modules["torch.cuda"]
    count = extension.get().device_count()
    cuda.default_generators = tuple(extension.get().default_generator(index) for index in range(count))
    cuda._get_device_properties = DeviceProperties
    cuda.has_magma, cuda.has_half = False, True


def _synchronize() -> None:
    extension.get().check_context()
    extension.get().refuse_in_capture()


def _is_in_bad_fork() -> bool:
    """Return whether this process was forked from one that had initialised CUDA, which CUDA does not survive."""
    return bool(_initialised_by) and _initialised_by[0] != os.getpid()


def set_device(index: int) -> None:
    """Make a device this thread's current one; CUDA's error if there is none of that index.

    It initialises CUDA, which a process does not survive that was forked from an initialised one.
    """
    cuda: Any = sys.modules["torch.cuda"]
    cuda._lazy_init()
    extension.get().set_device(index)


def _exchange(index: int) -> int:
    return -1 if index < 0 else int(extension.get().set_device(index))


def _maybe_exchange(index: int) -> int:
    """Do what `_exchange` does, as a function of its own: torch.compile knows the two by their identity."""
    return _exchange(index)


_sync_debug_mode = [0]


def _set_sync_debug_mode(mode: int) -> None:
    """Set the mode: 0 is silent, 1 warns where the host waits for a GPU, 2 raises there."""
    if mode:
        _warn_of_prototype()
    extension.get().exchange_sync_mode(mode)
    _sync_debug_mode[:] = [mode]


@functools.cache
def _warn_of_prototype() -> None:
    what = "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations"
    warnings.warn(what, stacklevel=4)


class DeviceProperties:
    """The properties of a device, with the names of `torch.cuda.get_device_properties`."""

    warp_size = 32
    is_integrated = is_multi_gpu_board = 0
    max_threads_per_block = 1024
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    memory_bus_width = 5120
    clock_rate, memory_clock_rate = 1410000, 1215000
    pci_device_id = pci_domain_id = 0

    def __init__(self, index: int) -> None:
        """Describe the device of that index."""
        profile = chosen_profile()
        self.name = profile.name
        self.total_memory = int(extension.get().device_bytes())
        self.major, self.minor = profile.capability
        self.multi_processor_count = profile.multiprocessors
        self.max_threads_per_multi_processor = profile.threads
        self.shared_memory_per_multiprocessor = profile.shared_memory
        self.shared_memory_per_block_optin = profile.shared_memory - 1024
        self.L2_cache_size = int(profile.l2_mebibytes * 2**20)
        self.pci_bus_id = index
        self.uuid = f"00000000-0000-0000-0000-{index:012d}"
        self.gcnArchName = ""

    def __repr__(self) -> str:
        """Return what a CUDA build prints."""
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor},"
            f" total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count},"
            f" uuid={self.uuid}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )
