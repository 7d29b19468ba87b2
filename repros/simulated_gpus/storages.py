"""Storages: `torch.UntypedStorage` calls CUDA's own allocator in compiled code."""

from __future__ import annotations

import functools
from typing import Any

from . import extension
from .refused import IPC, refusing


def install(torch: Any) -> None:
    """Make `torch.UntypedStorage` use the simulated allocator, and refuse CUDA IPC."""
    kind = torch.UntypedStorage
    make, resize = kind.__new__, kind.resize_

    def new(cls: Any, *arguments: Any, device: Any = None, **named: Any) -> Any:
        if device is None or torch.device(device).type != "cuda":
            given = {} if device is None else {"device": device}
            return make(cls, *arguments, **given, **named)
        content = arguments[0] if arguments else named.get("size", 0)
        made = (
            torch.empty(content, dtype=torch.uint8, device=device)
            if isinstance(content, int)
            else torch.tensor(list(content), dtype=torch.uint8).to(device)
        )
        return made.untyped_storage() if hasattr(made, "untyped_storage") else made.storage()._untyped_storage

    @functools.wraps(resize)
    def resize_(self: Any, size: int) -> Any:
        if self.device.type != "cuda":
            return resize(self, size)
        extension.get().resize_storage(self._cdata, size)
        return self

    kind.__new__, kind.resize_ = new, resize_
    for name in ("_share_cuda_", "_new_shared_cuda", "_release_ipc_counter_cuda"):
        setattr(kind, name, staticmethod(refusing(IPC)))
