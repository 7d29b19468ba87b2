"""Workarounds for torch 2.0: what it does for CUDA by name, and later versions for every backend.

Nothing here runs on torch 2.1 or newer. `torch.Generator(device="sim")` and collectives are left out, because torch 2.0
decides about them in compiled code.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def install(extension: Any) -> None:
    """Install the workarounds if this torch needs them."""
    if hasattr(torch.utils, "generate_methods_for_privateuse1_backend"):
        return
    _seed_with_cuda()
    _accept_storages(extension)
    for optimizer in (torch.optim.Adam, torch.optim.AdamW):
        _allow_fused(optimizer)


# torch/random.py `manual_seed`: `torch.cuda.manual_seed_all(seed)`


def _seed_with_cuda() -> None:
    seed_cuda = torch.cuda.manual_seed_all

    @functools.wraps(seed_cuda)
    def manual_seed_all(seed: int) -> None:
        seed_cuda(seed)
        torch.sim.manual_seed_all(seed)

    torch.cuda.manual_seed_all = manual_seed_all


# torch/storage.py `cpu` and `clone`, torch/_tensor.py and torch/_utils.py through `Tensor.set_`: these accept a storage
# from Python on "cpu" and "cuda" only. `torch.save`, `torch.load` and `copy.deepcopy` use them.


def _accept_storages(extension: Any) -> None:
    cpu, clone, set_ = torch.UntypedStorage.cpu, torch.UntypedStorage.clone, torch.Tensor.set_

    def all_bytes(storage: Any) -> torch.Tensor:
        tensor: torch.Tensor = extension.bytes_of_storage(storage._cdata)
        return tensor

    @functools.wraps(cpu)
    def storage_cpu(self: Any) -> Any:
        return all_bytes(self).cpu().untyped_storage() if self.device.type == "sim" else cpu(self)

    @functools.wraps(clone)
    def storage_clone(self: Any) -> Any:
        return all_bytes(self).clone().untyped_storage() if self.device.type == "sim" else clone(self)

    @functools.wraps(set_)
    def tensor_set(self: Any, source: Any = None, *shape: Any, **named: Any) -> Any:
        storage = getattr(source, "_untyped_storage", source)
        if not isinstance(storage, torch.UntypedStorage) or storage.device.type != "sim":
            return set_(self, *(() if source is None else (source,)), *shape, **named)
        whole = (0, (storage.nbytes() // self.element_size(),), (1,))
        return set_(self, all_bytes(storage).view(self.dtype), *(shape or (() if named else whole)), **named)

    torch.UntypedStorage.cpu, torch.UntypedStorage.clone, torch.Tensor.set_ = storage_cpu, storage_clone, tensor_set


# torch/optim/adam.py and adamw.py: "`fused=True` requires all the params to be CUDA, floating point Tensor"


def _allow_fused(optimizer: Any) -> None:
    construct = optimizer.__init__

    @functools.wraps(construct)
    def init(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        params = list(params)
        fused = kwargs.get("fused") and not kwargs.get("differentiable") and not kwargs.get("foreach")
        if not (fused and _all_on_sim(params)):
            construct(self, params, *args, **kwargs)
            return
        construct(self, params, *args, **{**kwargs, "fused": None, "foreach": False})
        self._step_supports_amp_scaling = True
        for settings in (self.defaults, *self.param_groups):
            settings.update(fused=True, foreach=kwargs.get("foreach"))

    optimizer.__init__ = init


def _all_on_sim(params: list[Any]) -> bool:
    tensors = [p for group in params for p in (list(group["params"]) if isinstance(group, dict) else [group])]
    return all(tensor.device.type == "sim" and tensor.is_floating_point() for tensor in tensors)
