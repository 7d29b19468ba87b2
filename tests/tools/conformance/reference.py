"""The references for the simulated accelerator: the CPU for whole results, CUDA's own code for their layout."""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """A device whose results are expected of the simulated accelerator."""

    name: str
    device: str
    computes: bool
    """Whether the values count, too; on the CUDA stub (tests/tools/cuda_stub) no kernel computes any."""


CPU = Reference("cpu", "cpu", computes=True)
CUDA = Reference("cuda", "cuda:0", computes=False)
REFERENCES = {reference.name: reference for reference in (CPU, CUDA)}
