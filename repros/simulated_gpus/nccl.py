"""`ProcessGroupNCCL`: a process group over Gloo for CUDA tensors only."""

from __future__ import annotations

import ctypes
import functools
from datetime import timedelta
from typing import Any

from . import extension

_TIMEOUT = timedelta(minutes=10)
"""NCCL's default (torch/csrc/distributed/c10d/Types.hpp, `kProcessGroupNCCLDefaultTimeout`)."""


def install(torch: Any) -> None:
    """Add NCCL to `torch.distributed`, unless that is not built or has no process groups for this device."""
    if not torch.distributed.is_available() or not hasattr(extension.get(), "collectives"):
        return
    dist = torch.distributed
    c10d = dist.distributed_c10d
    group_class = _group_class(torch)
    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        if name == "ProcessGroupNCCL" or hasattr(c10d, name):
            for module in (c10d, dist, torch._C._distributed_c10d):
                setattr(module, name, group_class)
    _complete(torch._C._distributed_c10d.Backend)
    if hasattr(extension.get(), "host_options"):
        _let_groups_be_split(torch._C._distributed_c10d.Backend, dist.ProcessGroupGloo._Options)
    torch._C._distributed_c10d._hash_tensors = hash_tensors
    c10d._NCCL_AVAILABLE = True
    for module in (c10d, getattr(dist, "constants", c10d)):
        module.default_pg_nccl_timeout = _TIMEOUT
    # From 2.15 a table has the creators of process groups.
    register = getattr(c10d, "_register_builtin_nccl_as_legacy", None)
    if register is not None:
        c10d.Backend._plugins.pop("NCCL", None)
        register()
    _let_gloo_take_device_tensors(c10d, torch.device("cuda"))


def _complete(backend: Any) -> None:
    """Give groups the methods that `torch.distributed` calls of NCCL's alone, where their own class lacks them.

    Work is done when a call returns, so there is nothing to end or to abort; the timeout stays that of the beginning.
    """
    for name in (
        *("shutdown", "_shutdown", "abort", "_abort", "_group_start", "_group_end"),
        *("_set_default_timeout", "_add_ephemeral_timeout", "perform_nocolor_split"),
    ):
        if not hasattr(backend, name):
            setattr(backend, name, lambda *_: None)


def _let_groups_be_split(backend: Any, options: Any) -> None:
    """Give groups their options, those of the Gloo group underneath: `split_group` changes a copy of them."""

    def copied(given: Any, _memo: Any) -> Any:
        made = options()
        made._devices, made._threads, made._timeout = given._devices, given._threads, given._timeout
        return made

    options.__deepcopy__ = copied
    backend.options = property(extension.get().host_options)


_WORD = 2**64 - 1


def hash_tensors(tensors: Any) -> int:
    """Return the hash of the tensors' storages that NCCL's log shows with `TORCH_DISTRIBUTED_DEBUG=DETAIL`.

    CPU builds lack it, and CUDA builds copy the bytes by CUDA's runtime. A simulated GPU's memory is the host's.
    Source: torch/csrc/distributed/c10d/NCCLUtils.cpp, `hashTensors`, and c10/util/hash.h.

    Args:
        tensors: tensors of any shape and device; one without elements adds nothing.
    """
    seed = 0
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if not tensor.numel() or not storage.data_ptr():
            continue
        size = storage.nbytes()
        # C++'s `char` is signed, and `std::hash` of a number is the number.
        words = [_combine_hashes(size, char & _WORD) for char in (*range(128), *range(-128, 0))]
        for byte in ctypes.string_at(storage.data_ptr(), size):
            seed = _combine_hashes(seed, words[byte])
    return seed


def _combine_hashes(seed: int, value: int) -> int:
    return seed ^ ((value + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & _WORD)


def _group_class(torch: Any) -> Any:
    dist = torch.distributed

    class Options:
        """What a program may ask of a group; only the timeout has an effect."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.backend, self.is_high_priority_stream = "nccl", is_high_priority_stream
            self.config: Any = type("NCCLConfig", (), {})()
            self._timeout = _TIMEOUT
            self.split_from, self.split_color = None, -1
            self.global_ranks_in_group: list[int] = []
            self.group_name = self.group_desc = ""

    class Kind(type):
        """A class whose instances are made by the extension."""

        def __call__(cls, store: Any, rank: int, size: int, options: Any = None, timeout: Any = None) -> Any:
            limit = next(
                (
                    value
                    for value in (options, timeout, getattr(options, "_timeout", None))
                    if isinstance(value, timedelta)
                ),
                _TIMEOUT,
            )
            return extension.get().nccl(dist.ProcessGroupGloo(store, rank, size, timeout=limit), store)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, torch._C._distributed_c10d.Backend) and value.name() == "nccl"

    return Kind("ProcessGroupNCCL", (), {"Options": Options, "__module__": "torch.distributed.distributed_c10d"})


# --- torch/distributed/distributed_c10d.py `Backend.backend_capability`: `GLOO: ["cpu", "cuda"]`
#     A Gloo group serves CUDA tensors too, by copying them to the host. In a job whose ranks are bound to a device,
#     `_new_process_group_helper` asks the new group for its backend for that device, and raises if there is none.
#     Gloo itself refuses tensors on this device, so its group gets a backend for them that aliases their host memory.


def _let_gloo_take_device_tensors(c10d: Any, device: Any) -> None:
    original = c10d._new_process_group_helper

    @functools.wraps(original)
    def new_process_group(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        group = made[0]
        if isinstance(group, c10d.ProcessGroup) and device in group._device_types:
            backend = group._get_backend(device)
            if isinstance(backend, c10d.ProcessGroupGloo):
                _replace_backend(c10d, group, device, extension.get().collectives(backend))
        return made

    c10d._new_process_group_helper = new_process_group


def _replace_backend(c10d: Any, group: Any, device: Any, backend: Any) -> None:
    """Give a group another backend for a device; the group's names, which its backends have, stay (from torch 2.2)."""
    names = [name for name in ("group_name", "group_desc") if hasattr(group, name)]
    kept = [getattr(group, name) for name in names]
    group._register_backend(device, c10d.ProcessGroup.BackendType.CUSTOM, backend)
    for name, text in zip(names, kept):
        getattr(group, f"_set_{name}")(text)
