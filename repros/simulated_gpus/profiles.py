"""Profiles of real GPUs: name, memory, compute capability, multiprocessors, shared memory of each, L2 cache.

Capability, multiprocessors and caches are those of NVIDIA's data sheets and the CUDA programming guide. The
memory is the capacity that a GPU reports, below the nominal size; it differs by some tens of MiB with the driver.
PyTorch's out-of-memory messages in public threads state 14.75 GiB on a T4, 22.20 on an A10G, 23.65 on an RTX 4090,
44.40 to 44.42 on an L40 and L40S, 79.11 on an H100, and `deviceQuery` 42298834944 bytes on an A100 of 40 GB, 178.35 GiB
and 126.5 MiB of L2 cache on a B200. An H200 was asked for its own: 139.80 GiB, 60 MiB of L2 cache
(tools/measure/gpu/observed). No such figure was found for the L4.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .errors import SimUnavailableError

VARIABLE = "REPROS_SIM_LIKE"


class Profile(NamedTuple):
    """The properties of one model of GPU."""

    name: str
    """Begins with "Simulated", so that no output can be taken for that of a GPU."""
    gibibytes: float | None
    """Total memory; None for the machine's own."""
    capability: tuple[int, int]
    multiprocessors: int
    shared_memory: int
    """Bytes of shared memory of each multiprocessor."""
    l2_mebibytes: float

    @property
    def threads(self) -> int:
        """The most threads of each multiprocessor, by its capability (CUDA programming guide, table of them)."""
        return {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536}.get(self.capability, 2048)

    @property
    def bytes(self) -> int | None:
        """Total memory in bytes; None for the machine's own."""
        return None if self.gibibytes is None else int(self.gibibytes * 2**30)


PLAIN = Profile("Simulated CUDA device", None, (8, 0), 108, 167936, 40)

PROFILES = {
    "b200": Profile("Simulated NVIDIA B200", 178.35, (10, 0), 148, 233472, 126.5),
    "h200": Profile("Simulated NVIDIA H200", 139.80, (9, 0), 132, 233472, 60),
    "h100": Profile("Simulated NVIDIA H100 80GB HBM3", 79.10, (9, 0), 132, 233472, 50),
    "a100": Profile("Simulated NVIDIA A100-SXM4-80GB", 79.15, (8, 0), 108, 167936, 40),
    "a100-40gb": Profile("Simulated NVIDIA A100-SXM4-40GB", 39.39, (8, 0), 108, 167936, 40),
    "l40s": Profile("Simulated NVIDIA L40S", 44.39, (8, 9), 142, 102400, 96),
    "l4": Profile("Simulated NVIDIA L4", 22.03, (8, 9), 58, 102400, 48),
    "a10g": Profile("Simulated NVIDIA A10G", 22.19, (8, 6), 80, 102400, 6),
    "rtx4090": Profile("Simulated NVIDIA GeForce RTX 4090", 23.65, (8, 9), 128, 102400, 72),
    "rtx3090": Profile("Simulated NVIDIA GeForce RTX 3090", 23.69, (8, 6), 82, 102400, 6),
    "v100": Profile("Simulated Tesla V100-SXM2-16GB", 15.77, (7, 0), 80, 98304, 6),
    "t4": Profile("Simulated Tesla T4", 14.75, (7, 5), 40, 65536, 4),
}


def chosen_profile() -> Profile:
    """Return the profile that REPROS_SIM_LIKE names, or the plain one.

    Raises:
        SimUnavailableError: there is no profile of that name.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return PLAIN
    if name not in PROFILES:
        raise SimUnavailableError(f"{VARIABLE}={name} is no profile; choose from {', '.join(PROFILES)}")
    return PROFILES[name]
