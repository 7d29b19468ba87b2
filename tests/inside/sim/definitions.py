"""What each collective gives by its definition, from what all ranks put in: computed in one process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tests.inside.sim.calls import Call, splits, values
from tests.inside.sim.ranks import Bits


def definition(call: Call, rank: int) -> list[Bits]:
    """What `rank` has after `call`. Only of exact values: in which order ranks are added is nobody's promise."""
    return [Bits.of(tensor) for tensor in _DEFINITIONS[call.operation](call, rank)]


def reduced(call: Call, tensors: list[Any]) -> Any:
    """The reduction of one tensor from each rank."""
    if call.reduce == "PREMUL_SUM":
        tensors = [tensor * call.factor for tensor in tensors]
    if tensors[0].dtype == torch.bool:
        # NCCL's group makes a sum of bools their union.
        combine = {"SUM": torch.logical_or, "MAX": torch.logical_or, "BOR": torch.logical_or}
        return functools.reduce(combine.get(call.reduce, torch.logical_and), tensors)
    combine = {
        "PRODUCT": torch.mul,
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }
    whole = functools.reduce(combine.get(call.reduce, torch.add), tensors)
    if call.reduce == "AVG":
        integral = not (whole.is_floating_point() or whole.is_complex())
        whole = whole.div(call.size, rounding_mode="trunc").to(whole.dtype) if integral else whole / call.size
    return whole


def _of_all(call: Call, part: int = 0) -> list[Any]:
    return [values(call, member, part) for member in call.members]


def _reduced_part(call: Call, part: int) -> Any:
    return reduced(call, _of_all(call, part))


def _own(call: Call, rank: int) -> int:
    return call.members.index(rank)


def _before(call: Call, rank: int) -> int:
    return call.members[_own(call, rank) - 1]


def _uneven(call: Call, rank: int) -> list[Any]:
    own = _own(call, rank)
    rows = [(member, counts[own]) for member, counts in zip(call.members, splits(call))]  # noqa: B905 # `strict` is from Python 3.10
    return [values(call, member, own, (count, *call.shape)) for member, count in rows]


_DEFINITIONS: dict[str, Callable[[Call, int], list[Any]]] = {
    "broadcast": lambda call, _: [values(call, call.root)],
    "all_reduce": lambda call, _: [_reduced_part(call, 0)],
    "all_reduce_coalesced": lambda call, _: [_reduced_part(call, part) for part in (0, 1)],
    "reduce": lambda call, rank: [_reduced_part(call, 0)] if rank == call.root else [],
    "all_gather": lambda call, _: _of_all(call),
    "all_gather_coalesced": lambda call, _: [values(call, member, part) for member in call.members for part in (0, 1)],
    "all_gather_into_tensor": lambda call, _: [torch.stack(_of_all(call))],
    "gather": lambda call, rank: _of_all(call) if rank == call.root else [],
    "scatter": lambda call, rank: [values(call, call.root, _own(call, rank))],
    "reduce_scatter": lambda call, rank: [_reduced_part(call, _own(call, rank))],
    "reduce_scatter_tensor": lambda call, rank: [_reduced_part(call, _own(call, rank))],
    "all_to_all": lambda call, rank: _of_all(call, _own(call, rank)),
    "all_to_all_uneven": _uneven,
    "all_to_all_single": lambda call, rank: [torch.stack(_of_all(call, _own(call, rank)))],
    "all_to_all_single_uneven": lambda call, rank: [torch.cat(_uneven(call, rank))],
    "send_and_recv": lambda call, rank: [] if rank == call.root else [values(call, call.root)],
    "isend_and_irecv": lambda call, rank: [values(call, _before(call, rank), part) for part in (0, 1)],
    "batch_isend_irecv": lambda call, rank: [values(call, _before(call, rank))],
    "coalesced_all_reduce": lambda call, _: [_reduced_part(call, part) for part in (0, 1)],
    "coalesced_all_gather": lambda call, _: [torch.stack(_of_all(call, part)) for part in (0, 1)],
    "coalesced_reduce_scatter": lambda call, rank: [
        _reduced_part(call, half * call.size + _own(call, rank)) for half in (0, 1)
    ],
    "coalesced_broadcasts": lambda call, _: [values(call, call.root, part) for part in (0, 1)],
}
