"""The numbers of PyTorch's message when a GPU's memory runs out, and what they mean."""

from __future__ import annotations

import re

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "bytes": 1}
_SIZE = rf"([\d.]+) ({'|'.join(_UNITS)})"
_PATTERNS = {
    "tried": (rf"Tried to allocate {_SIZE}",),
    "total": (rf"total capac\w+ of {_SIZE}", rf"{_SIZE} total capacity"),
    "free": (rf"of which {_SIZE} is free", rf"{_SIZE} free"),
    "allocated": (rf"{_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated"),
    "unallocated": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_SIZE} reserved in total by PyTorch",),
}
"""Of the releases from 1.5 on, the newer wording first."""
_CONTEXT = 0.6 * 2**30
"""Bytes that a process's CUDA context and libraries take besides the allocator."""
_OTHERS = 0.15
"""Share of the GPU beyond that which other processes hold, rather than the display."""
_PIECES = 0.1
"""Share of the GPU that is reserved and unused where memory is in pieces; less is usual where it is full."""
_LARGE = 0.25
"""Share of the GPU from which one tensor alone explains the failure."""


def read_gpu_memory(_: dict[str, str], message: str) -> dict[str, str]:
    """Return the sizes that a message states, those that follow, and what they show.

    `others_hold`: more is in use than this process's allocator and its CUDA context have. `fragmented`: more is
    reserved and unused than was asked for. `share`: the share of the GPU that one large tensor needs.
    """
    sizes = {name: size for name in _PATTERNS if (size := _find(name, message)) is not None}
    if "unallocated" not in sizes and {"reserved", "allocated"} <= sizes.keys():
        sizes["unallocated"] = sizes["reserved"] - sizes["allocated"]
    stated: tuple[str, ...] = ("total", "free", "allocated", "unallocated")
    words = {name: _text(sizes[name]) for name in stated if name in sizes}
    if not {"tried", "total", "free", "allocated", "unallocated"} <= sizes.keys():
        return words
    total, tried = sizes["total"], sizes["tried"]
    others = total - sizes["free"] - sizes["allocated"] - sizes["unallocated"]
    if others > _CONTEXT + _OTHERS * total:
        words |= {"others": _text(others), "others_hold": "by the message's numbers"}
    if sizes["unallocated"] >= max(tried, _PIECES * total):
        words["fragmented"] = "by the message's numbers"
    if tried >= _LARGE * total:
        words["share"] = f"{tried / total:.0%}"
    return words


def _find(name: str, message: str) -> float | None:
    found = next(filter(None, (re.search(pattern, message) for pattern in _PATTERNS[name])), None)
    return float(found[1].rstrip(".")) * _UNITS[found[2]] if found else None


def _text(size: float) -> str:
    unit = next(name for name in ("GiB", "MiB", "KiB", "bytes") if size >= _UNITS[name] or name == "bytes")
    return f"{size / _UNITS[unit]:,.3g} {unit}"
