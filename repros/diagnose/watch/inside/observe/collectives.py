"""`collective(group, name, tensors)`: a collective of a process group is about to begin, on these tensors.

The methods of `ProcessGroup` are patched, which the functions of `torch.distributed` call. What DDP's reducer and other
C++ code reduces is not seen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch import Tensor

_NAMES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather_coalesced",
    "_allgather_base": "all_gather_into_tensor",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
}
"""The methods, with the names of `torch.distributed`'s functions that call them."""


def attach(watch: Watch) -> None:
    """Observe collectives once torch.distributed is imported."""

    def begins(name: str, args: Args, kwargs: Kwargs) -> None:
        watch.notify("collective", args[0], name, list(_tensors([*args[1:], *kwargs.values()])))

    def patch(_: object) -> None:
        from torch._C._distributed_c10d import ProcessGroup

        for method, name in _NAMES.items():
            if hasattr(ProcessGroup, method):
                around(ProcessGroup, method, before=functools.partial(begins, name))

    when_imported("torch.distributed.distributed_c10d", patch)


def _tensors(values: Iterable[object]) -> Iterator[Tensor]:
    """Yield the tensors of arguments: a tensor, a list of them, or a list of such lists."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
