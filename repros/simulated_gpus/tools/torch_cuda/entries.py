"""The entries of `entries.toml`, and those of tensor and storage types."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tomllib

RIGHT, NOTHING, REFUSED, LEFT = "right", "nothing to do", "refused", "left to CUDA's library"

_TYPES = {
    "BFloat16": "bfloat16", "Bool": "bool", "Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32",
    "Half": "float16", "Int": "int32", "Long": "int64", "Short": "int16",
}  # fmt: skip


class Entry(NamedTuple):
    """One or more names, with what they do on simulated GPUs."""

    names: str
    """Below `torch.cuda`, separated by spaces."""
    kind: str
    check: str = ""
    """An expression: true, or an error if the names are refused."""
    words: str = ""
    """What an error says; else what there is to know."""


def _types() -> list[Entry]:
    made = "torch.ones(2, 2, device='cuda', dtype=torch.{})"
    holds = "isinstance({0}, cuda.{1}Tensor) and cuda.{1}Tensor(3).is_cuda"
    tensors = [Entry(f"{name}Tensor", RIGHT, holds.format(made.format(dtype), name)) for name, dtype in _TYPES.items()]
    storages = [
        Entry(f"{name}Storage", RIGHT, f"len(cuda.{name}Storage(3)) == 3 and cuda.{name}Storage(3).is_cuda")
        for name in [*_TYPES, "ComplexFloat", "ComplexDouble"]
    ]
    sparse = [
        Entry(f"sparse.{name}Tensor", RIGHT, f"isinstance({made.format(dtype)}.to_sparse(), cuda.sparse.{name}Tensor)")
        for name, dtype in _TYPES.items()
        if name != "Bool"
    ]
    return [*tensors, *storages, *sparse]


_KEPT = tomllib.loads((Path(__file__).parent / "entries.toml").read_text(encoding="utf-8"))["entry"]
ENTRIES: list[Entry] = [*(Entry(**kept) for kept in _KEPT), *_types()]
