"""What the simulated accelerator is held against: the CPU for all that comes out, CUDA's own code for its layout."""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """A device that says what is right."""

    name: str
    device: str
    computes: bool
    """Whether the numbers are right, too; on the hollow devices of CUDA (../hollow/) no kernel computes any."""


CPU = Reference("cpu", "cpu", computes=True)
CUDA = Reference("cuda", "cuda:0", computes=False)
REFERENCES = {reference.name: reference for reference in (CPU, CUDA)}
