"""The causes of the libraries' test failures on sim, each found by investigation.

Every kept failure has a cause here, and a test checks that every cause still has a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Cause(NamedTuple):
    """The cause of some failures."""

    library: str
    """The library's name in `LIBRARIES`."""
    pattern: str
    """A regular expression for `TEST: MESSAGE`; the first cause that matches is taken."""
    why: str
    """The explanation, with the tests as its subject."""


CAUSES = (
    Cause(
        "accelerate",
        "LocalEntryNotFoundError|offline mode",
        "load a model from the hub, which was not reachable in this run.",
    ),
    Cause(
        "accelerate",
        "test_setting_cpu_affinity",
        "asks NVIDIA's driver, through nvidia-ml-py, which cores are near a GPU.",
    ),
    Cause("pytorch", "nvidia-smi", "asks NVIDIA's driver, by `nvidia-smi`, for utilization and temperature."),
    Cause(
        "peft",
        "LocalEntryNotFoundError|huggingface.co",
        "load a model from the hub, which was not reachable in this run.",
    ),
    Cause(
        "torchmetrics",
        "gpu_sync_points_uptodate",
        "expect `torch.cuda.set_sync_debug_mode` to find a call that waits for the GPU; simulated GPUs do not see which"
        " calls wait, as a warning says.",
    ),
    Cause(
        "torchmetrics",
        "FrechetInceptionDistance",
        "imports a metric that torchmetrics has only where torch-fidelity is installed, which it was not.",
    ),
    Cause(
        "c10d",
        "monitored_barrier_allreduce_hang",
        "expect the message of NCCL's watchdog for a rank that times out; a simulated group has Gloo's.",
    ),
    Cause(
        "c10d",
        "ddp_profiling_torch_profiler",
        "looks for a record of each collective's parameters, which NCCL's group alone adds to a profile.",
    ),
    Cause(
        "c10d",
        "test_ddp_uneven_inputs: .*Timeout",
        "trains a convolution on images of 1000 by 1000 pixels hundreds of times; a step takes a processor 12 seconds.",
    ),
)


def cause_of(library: str, test: str, message: str, causes: Iterable[Cause] = CAUSES) -> Cause | None:
    """Return the first cause that matches a failure; None if it has not been investigated."""
    matching = (
        cause for cause in causes if cause.library == library and re.search(cause.pattern, f"{test}: {message}")
    )
    return next(matching, None)
