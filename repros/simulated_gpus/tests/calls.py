"""A collective call as plain data, and the ranks' inputs to it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

dist = torch.distributed


@dataclass(frozen=True)
class Call:
    """A collective call, the same in each of the `members`."""

    operation: str
    """A key of `OPERATIONS`."""
    members: tuple[int, ...]
    """The ranks that take part, in ascending order."""
    root: int
    """The rank that sends or collects: one of `members`, for the operations that have one."""
    dtype: str
    shape: tuple[int, ...]
    """The shape of one rank's part."""
    reduce: str = "SUM"
    """The reduction's name, for the operations that reduce."""
    factor: float = 1.0
    """The factor of PREMUL_SUM."""
    asynchronous: bool = False
    """Whether the call starts the work and waits for it later."""
    exact: bool = True
    """Whether the values are chosen so that no reduction rounds."""
    seed: int = 0

    @property
    def size(self) -> int:
        """The number of ranks that take part."""
        return len(self.members)


def values(call: Call, rank: int, part: int = 0, shape: tuple[int, ...] | None = None) -> Any:
    """Return the CPU tensor that `rank` puts in as its part number `part`."""
    shape = call.shape if shape is None else shape
    generator = torch.Generator().manual_seed(call.seed * 1_000_003 + rank * 1009 + part)
    dtype = getattr(torch, call.dtype)
    if dtype.is_complex:
        real = _numbers(call, (*shape, 2), torch.float64 if dtype == torch.complex128 else torch.float32, generator)
        return torch.view_as_complex(real)
    return _numbers(call, shape, dtype, generator)


def _numbers(call: Call, shape: tuple[int, ...], dtype: Any, generator: Any) -> Any:
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        low, high = (0, 4) if call.exact else (0, 256)
        return torch.randint(low if dtype == torch.uint8 else -high // 2, high, shape, generator=generator).to(dtype)
    if not call.exact:
        return torch.randn(shape, generator=generator).to(dtype)
    few = torch.tensor([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
    return few[torch.randint(0, len(few), shape, generator=generator)].to(dtype)


def splits(call: Call) -> list[list[int]]:
    """Return the number of rows that each member (outer) sends to each (inner) in an uneven all-to-all."""
    generator = random.Random(call.seed)  # noqa: S311 # an example, not a secret
    return [[generator.randrange(3) for _ in call.members] for _ in call.members]
