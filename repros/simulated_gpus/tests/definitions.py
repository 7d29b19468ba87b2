"""The results of each collective by its definition, computed in one process from all ranks' inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from repros.simulated_gpus.tests.calls import Call, splits, values
from repros.simulated_gpus.tests.ranks import Bits


def definition(call: Call, rank: int) -> list[Bits]:
    """Return the tensors of `rank` after `call`, for exact values only: the order of additions is not defined."""
    return [Bits.of(tensor) for tensor in _DEFINITIONS[call.operation](call, rank)]


def reduce_tensors(call: Call, tensors: list[Any]) -> Any:
    """Return the reduction of one tensor from each rank."""
    if call.reduce == "PREMUL_SUM":
        tensors = [tensor * call.factor for tensor in tensors]
    if tensors[0].dtype == torch.bool:
        # NCCL's group reduces a sum of bools to their union.
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


def _parts(call: Call, part: int = 0) -> list[Any]:
    return [values(call, member, part) for member in call.members]


def _reduce_part(call: Call, part: int) -> Any:
    return reduce_tensors(call, _parts(call, part))


def _position(call: Call, rank: int) -> int:
    return call.members.index(rank)


def _previous(call: Call, rank: int) -> int:
    return call.members[_position(call, rank) - 1]


def _uneven_parts(call: Call, rank: int) -> list[Any]:
    own = _position(call, rank)
    rows = [(member, counts[own]) for member, counts in zip(call.members, splits(call))]  # `strict` is from Python 3.10
    return [values(call, member, own, (count, *call.shape)) for member, count in rows]


_DEFINITIONS: dict[str, Callable[[Call, int], list[Any]]] = {
    "broadcast": lambda call, _: [values(call, call.root)],
    "all_reduce": lambda call, _: [_reduce_part(call, 0)],
    "all_reduce_coalesced": lambda call, _: [_reduce_part(call, part) for part in (0, 1)],
    "reduce": lambda call, rank: [_reduce_part(call, 0)] if rank == call.root else [],
    "all_gather": lambda call, _: _parts(call),
    "all_gather_coalesced": lambda call, _: [values(call, member, part) for member in call.members for part in (0, 1)],
    "all_gather_into_tensor": lambda call, _: [torch.stack(_parts(call))],
    "gather": lambda call, rank: _parts(call) if rank == call.root else [],
    "scatter": lambda call, rank: [values(call, call.root, _position(call, rank))],
    "reduce_scatter": lambda call, rank: [_reduce_part(call, _position(call, rank))],
    "reduce_scatter_tensor": lambda call, rank: [_reduce_part(call, _position(call, rank))],
    "all_to_all": lambda call, rank: _parts(call, _position(call, rank)),
    "all_to_all_uneven": _uneven_parts,
    "all_to_all_single": lambda call, rank: [torch.stack(_parts(call, _position(call, rank)))],
    "all_to_all_single_uneven": lambda call, rank: [torch.cat(_uneven_parts(call, rank))],
    "send_and_recv": lambda call, rank: [] if rank == call.root else [values(call, call.root)],
    "isend_and_irecv": lambda call, rank: [values(call, _previous(call, rank), part) for part in (0, 1)],
    "batch_isend_irecv": lambda call, rank: [values(call, _previous(call, rank))],
    "coalesced_all_reduce": lambda call, _: [_reduce_part(call, part) for part in (0, 1)],
    "coalesced_all_gather": lambda call, _: [torch.stack(_parts(call, part)) for part in (0, 1)],
    "coalesced_reduce_scatter": lambda call, rank: [
        _reduce_part(call, half * call.size + _position(call, rank)) for half in (0, 1)
    ],
    "coalesced_broadcasts": lambda call, _: [values(call, call.root, part) for part in (0, 1)],
}
