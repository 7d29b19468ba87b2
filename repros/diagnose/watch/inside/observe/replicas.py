"""The replicated modules of the process: `torch.nn.parallel.DistributedDataParallel`, and nothing else.

FSDP's and tensor parallel modules hold different parts on different ranks; they are not observed.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch import Tensor, device, dtype
    from torch.distributed import ProcessGroup
    from torch.nn import Parameter
    from torch.nn.parallel import DistributedDataParallel

replicas: list[Replica] = []
"""Every DistributedDataParallel of this process, in the order in which they were made."""

_REDUCING_HOOKS = {
    "allreduce_hook",
    "fp16_compress_hook",
    "bf16_compress_hook",
    "powerSGD_hook",
    "batched_powerSGD_hook",
}
"""Communication hooks of torch after which gradients agree; others may leave them different on purpose."""


class Replica:
    """One DistributedDataParallel, and what identifies it on all of its ranks."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        """Identify a wrapper that has just been made, on all ranks of its process group."""
        self.module = weakref.ref(ddp)
        self.key: list[Any] = _key(ddp.process_group)
        self.trained = {id(parameter) for parameter in ddp.module.parameters() if parameter.requires_grad}
        """The parameters that it reduces, by `id`: those that were trained when it was made."""
        self.is_converted = False
        """Whether a parameter got another dtype or device after it was wrapped: DDP's hook on it is lost then."""
        self.has_own_hook = False
        self._parameters: weakref.WeakValueDictionary[str, Parameter] | None = None
        """Weak, since a replica outlives its wrapper."""
        self.preparations = 0
        """How often its reducer was prepared for a backward: by the wrapper's forward, or by a library."""

    def forget(self) -> None:
        """Search the parameters again at the next request."""
        self._parameters = None

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters that must agree between the ranks: those trained, and not given to be ignored.

        The result is cached from one backward to the next, since it takes a walk over all modules.
        """
        if self._parameters is None:
            self._parameters = weakref.WeakValueDictionary(self._find_parameters())
        return dict(self._parameters.items())  # twice as fast as without `items`

    def _find_parameters(self) -> dict[str, Parameter]:
        ddp = self.module()
        if ddp is None or self.has_own_hook:
            return {}
        ignored = set(getattr(ddp, "parameters_to_ignore", ()))
        return {
            name: parameter
            for name, parameter in ddp.module.named_parameters()
            # A subclass, such as a DTensor, may hold a part.
            if parameter.requires_grad and name not in ignored and _is_plain(parameter)
        }


def _key(group: ProcessGroup) -> list[Any]:
    """Return the key of the next wrapper of a process group, which is the same on all of its ranks."""
    import torch.distributed as dist

    ranks = dist.get_process_group_ranks(group)
    return [run_name(), ranks, sum(replica.key[1] == ranks for replica in replicas)]


def _is_plain(parameter: Tensor) -> bool:
    import torch

    return type(parameter) in {torch.nn.Parameter, torch.Tensor}


def ranks_of_program() -> list[int]:
    """Return the ranks of the program; none without a process group."""
    dist = sys.modules.get("torch.distributed")
    is_there = dist is not None and dist.is_available() and dist.is_initialized()
    return list(range(dist.get_world_size())) if dist is not None and is_there else []


def run_name() -> str:
    """Return a name that all ranks of this process group agree on, and no other run of the program has.

    The first rank to ask the process group's store decides; the store is asked once, and no rank waits.
    """
    own = f"{os.getpid()}-{os.environ.get('MASTER_PORT', '')}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '')}"
    try:
        from torch.distributed import distributed_c10d

        store = distributed_c10d._get_default_store()
        return bytes(store.compare_set("repros_watch", "", own)).decode()
    except Exception:
        return own.partition("-")[2]


def _notify_wrapping(watch: Watch, args: Args, kwargs: Kwargs) -> None:
    try:
        import torch.distributed as dist

        module = kwargs.get("module", args[1] if len(args) > 1 else None)
        if kwargs.get("device_mesh") is None:
            watch.notify("wrapping", module, _key(kwargs.get("process_group") or dist.group.WORLD))
    except Exception as error:
        watch.events.failed(error, "wrapping")


def attach(watch: Watch) -> None:
    """Observe DistributedDataParallel: `wrapping(module, key)`, `replica(replica)` and `prepared(replica)`."""

    def made(args: Args, *_: object) -> None:
        try:
            replica = Replica(args[0])
        except Exception as error:
            watch.events.failed(error, "replica")
            return
        replicas.append(replica)
        watch.notify("replica", replica)

    def hooked(args: Args, kwargs: Kwargs, _: object) -> None:
        hook = kwargs.get("hook", args[2] if len(args) > 2 else None)  # noqa: PLR2004 - self, state, hook
        for replica in replicas:
            if replica.module() is args[0] and getattr(hook, "__name__", "") not in _REDUCING_HOOKS:
                replica.has_own_hook = True
                replica.forget()

    def prepared(args: Args, *_: object) -> None:
        for replica in replicas:
            ddp = replica.module()
            if ddp is not None and ddp.reducer is args[0]:
                replica.preparations += 1
                watch.notify("prepared", replica)

    def patch(module: ModuleType) -> None:
        import torch._C._distributed_c10d as c10d

        around(
            module.DistributedDataParallel, "__init__", before=lambda *call: _notify_wrapping(watch, *call), after=made
        )
        around(module.DistributedDataParallel, "register_comm_hook", after=hooked)
        # Not the wrapper's forward: `torch.compile` reads that, and Lightning prepares the reducer without it.
        around(c10d.Reducer, "prepare_for_backward", after=prepared)

    when_imported("torch.nn.parallel.distributed", patch)
    when_imported("torch.nn.modules.module", _patch_conversions)


def _patch_conversions(module: ModuleType) -> None:
    def kinds(args: Args, _: object = None) -> dict[int, tuple[dtype, device]]:
        tensors = args[0]._parameters.values() if replicas else ()
        return {id(tensor): (tensor.dtype, tensor.device) for tensor in tensors if tensor is not None}

    def converted(args: Args, _: object, before: dict[int, tuple[dtype, device]]) -> None:
        changed = {key for key, kind in kinds(args).items() if before.get(key, kind) != kind}
        for replica in replicas if changed else ():
            ddp = replica.module()
            if ddp is not None and any(id(parameter) in changed for parameter in ddp.parameters()):
                replica.is_converted = True

    # `Module.to`, `double`, `cpu` and all others go through it, module by module.
    around(module.Module, "_apply", before=kinds, after=converted)
