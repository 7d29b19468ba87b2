"""Execution of collective calls: the tensors of a rank, on a device, after a call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from repros.simulated_gpus.tests.calls import Call, splits, values
from repros.simulated_gpus.tests.ranks import Bits

dist = torch.distributed


def perform(call: Call, rank: int, device: str, group: Any) -> list[Bits]:
    """Make the call as `rank` on `device`; return the tensors that its definition fills on this rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of the operations are deprecated
        outputs = OPERATIONS[call.operation](_Side(call, rank, device, group))
    return [Bits.of(output) for output in outputs]


class _Side:
    """The rank that runs an operation: its inputs, its outputs, its process group."""

    def __init__(self, call: Call, rank: int, device: str, group: Any) -> None:
        self.call = call
        self.rank = rank
        self.device = device
        self.group = group
        self.at = call.members.index(rank)

    def input(self, part: int = 0, shape: tuple[int, ...] | None = None) -> Any:
        return values(self.call, self.rank, part, shape).to(self.device)

    def empty(self, *before: int) -> Any:
        shape = (*before, *self.call.shape)
        return torch.empty(shape, dtype=getattr(torch, self.call.dtype), device=self.device)

    def empty_parts(self) -> list[Any]:
        return [self.empty() for _ in self.call.members]

    @property
    def op(self) -> Any:
        if self.call.reduce == "PREMUL_SUM":
            return torch._C._distributed_c10d._make_nccl_premul_sum(self.call.factor)
        return getattr(dist.ReduceOp, self.call.reduce)

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        work = function(*arguments, group=self.group, async_op=self.call.asynchronous, **options)
        if self.call.asynchronous:
            work.wait()
            # The coalesced all-reduce returns a future, and some of Gloo's work on the CPU never reports completion.
            if isinstance(work, dist.Work) and self.device != "cpu":
                assert work.is_completed()
                assert work.is_success()


def _broadcast(side: _Side) -> list[Any]:
    tensor = side.input()
    side.run(dist.broadcast, tensor, src=side.call.root)
    return [tensor]


def _all_reduce(side: _Side) -> list[Any]:
    tensor = side.input()
    side.run(dist.all_reduce, tensor, op=side.op)
    return [tensor]


def _all_reduce_coalesced(side: _Side) -> list[Any]:
    tensors = [side.input(0), side.input(1)]
    side.run(dist.all_reduce_coalesced, tensors, op=side.op)
    return tensors


def _reduce(side: _Side) -> list[Any]:
    tensor = side.input()
    side.run(dist.reduce, tensor, dst=side.call.root, op=side.op)
    return [tensor] if side.rank == side.call.root else []


def _all_gather(side: _Side) -> list[Any]:
    parts = side.empty_parts()
    side.run(dist.all_gather, parts, side.input())
    return parts


def _all_gather_coalesced(side: _Side) -> list[Any]:
    parts = [[side.empty(), side.empty()] for _ in side.call.members]
    side.run(dist.all_gather_coalesced, parts, [side.input(0), side.input(1)])
    return [tensor for part in parts for tensor in part]


def _all_gather_into_tensor(side: _Side) -> list[Any]:
    whole = side.empty(side.call.size)
    side.run(dist.all_gather_into_tensor, whole, side.input())
    return [whole]


def _gather(side: _Side) -> list[Any]:
    parts = side.empty_parts() if side.rank == side.call.root else None
    side.run(dist.gather, side.input(), parts, dst=side.call.root)
    return parts or []


def _scatter(side: _Side) -> list[Any]:
    tensor = side.empty()
    parts = [side.input(part) for part in range(side.call.size)] if side.rank == side.call.root else None
    side.run(dist.scatter, tensor, parts, src=side.call.root)
    return [tensor]


def _reduce_scatter(side: _Side) -> list[Any]:
    tensor = side.empty()
    side.run(dist.reduce_scatter, tensor, [side.input(part) for part in range(side.call.size)], op=side.op)
    return [tensor]


def _reduce_scatter_tensor(side: _Side) -> list[Any]:
    tensor = side.empty().reshape(-1)
    whole = torch.cat([side.input(part).reshape(-1) for part in range(side.call.size)])  # Gloo aborts on other shapes
    side.run(dist.reduce_scatter_tensor, tensor, whole, op=side.op)
    return [tensor.reshape(side.call.shape)]


def _all_to_all(side: _Side) -> list[Any]:
    received = side.empty_parts()
    side.run(dist.all_to_all, received, [side.input(to) for to in range(side.call.size)])
    return received


def _all_to_all_uneven(side: _Side) -> list[Any]:
    counts = splits(side.call)
    sent = [side.input(to, (count, *side.call.shape)) for to, count in enumerate(counts[side.at])]
    received = [side.empty(row[side.at]) for row in counts]
    side.run(dist.all_to_all, received, sent)
    return received


def _all_to_all_single(side: _Side) -> list[Any]:
    sent = torch.stack([side.input(to) for to in range(side.call.size)])
    received = torch.empty_like(sent)
    side.run(dist.all_to_all_single, received, sent)
    return [received]


def _all_to_all_single_uneven(side: _Side) -> list[Any]:
    counts = splits(side.call)
    sent = torch.cat([side.input(to, (count, *side.call.shape)) for to, count in enumerate(counts[side.at])])
    received_counts = [row[side.at] for row in counts]
    received = side.empty(sum(received_counts))
    side.run(dist.all_to_all_single, received, sent, received_counts, counts[side.at])
    return [received]


def _neighbours(side: _Side) -> tuple[int, int]:
    members = side.call.members
    return members[(side.at + 1) % len(members)], members[side.at - 1]


def _send_and_recv(side: _Side) -> list[Any]:
    """Send from the root to each of the others, one after another."""
    call = side.call
    if side.rank == call.root:
        for other in call.members:
            if other != call.root:
                dist.send(side.input(), other, group=side.group)
        return []
    tensor = side.empty()
    dist.recv(tensor, call.root, group=side.group)
    return [tensor]


def _isend_and_irecv(side: _Side) -> list[Any]:
    """Send two messages to the next rank of the ring, distinguished by tags, the second received first."""
    next_rank, previous_rank = _neighbours(side)
    sent = [side.input(0), side.input(1)]
    received = [torch.empty_like(tensor) for tensor in sent]
    works = [dist.isend(tensor, next_rank, group=side.group, tag=tag) for tag, tensor in enumerate(sent)]
    works += [dist.irecv(received[tag], previous_rank, group=side.group, tag=tag) for tag in (1, 0)]
    for work in works:
        work.wait()
    return received


def _batch_isend_irecv(side: _Side) -> list[Any]:
    next_rank, previous_rank = _neighbours(side)
    received = side.empty()
    batch = [
        dist.P2POp(dist.irecv, received, previous_rank, group=side.group),
        dist.P2POp(dist.isend, side.input(), next_rank, group=side.group),
    ]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [received]


def _coalesce(side: _Side, begin: Callable[..., None], *, device: Any = None) -> None:
    manager = dist.distributed_c10d._coalescing_manager
    with manager(side.group, device, async_ops=side.call.asynchronous) as coalesced:
        begin()
    if side.call.asynchronous:
        coalesced.wait()


def _coalesced_all_reduce(side: _Side) -> list[Any]:
    tensors = [side.input(0), side.input(1)]

    def begin() -> None:
        for tensor in tensors:
            dist.all_reduce(tensor, op=side.op, group=side.group)

    _coalesce(side, begin)
    return tensors


def _coalesced_all_gather(side: _Side) -> list[Any]:
    wholes = [side.empty(side.call.size) for _ in "ab"]

    def begin() -> None:
        for part, whole in enumerate(wholes):
            dist.all_gather_into_tensor(whole, side.input(part), group=side.group)

    _coalesce(side, begin)
    return wholes


def _coalesced_reduce_scatter(side: _Side) -> list[Any]:
    tensors = [side.empty().reshape(-1) for _ in "ab"]

    def begin() -> None:
        for half, tensor in enumerate(tensors):
            parts = [side.input(half * side.call.size + part).reshape(-1) for part in range(side.call.size)]
            dist.reduce_scatter_tensor(tensor, torch.cat(parts), op=side.op, group=side.group)

    _coalesce(side, begin)
    return [tensor.reshape(side.call.shape) for tensor in tensors]


def _coalesced_broadcasts(side: _Side) -> list[Any]:
    """Use the manager for an operation without a coalesced form: the backend gets the batch's begin and end."""
    tensors = [side.input(0), side.input(1)]

    def begin() -> None:
        for tensor in tensors:
            dist.broadcast(tensor, side.call.root, group=side.group, async_op=True)

    _coalesce(side, begin, device=torch.device(side.device))
    return tensors


OPERATIONS: dict[str, Callable[[_Side], list[Any]]] = {
    "broadcast": _broadcast,
    "all_reduce": _all_reduce,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "all_gather_coalesced": _all_gather_coalesced,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "all_to_all": _all_to_all,
    "all_to_all_uneven": _all_to_all_uneven,
    "all_to_all_single": _all_to_all_single,
    "all_to_all_single_uneven": _all_to_all_single_uneven,
    "send_and_recv": _send_and_recv,
    "isend_and_irecv": _isend_and_irecv,
    "batch_isend_irecv": _batch_isend_irecv,
    "coalesced_all_reduce": _coalesced_all_reduce,
    "coalesced_all_gather": _coalesced_all_gather,
    "coalesced_reduce_scatter": _coalesced_reduce_scatter,
    "coalesced_broadcasts": _coalesced_broadcasts,
}
REDUCING = {name for name in OPERATIONS if "reduce" in name}
"""The operations with a reduction."""
