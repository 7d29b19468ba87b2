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
        "BF16 all reduce communication hook",
        "uses torch's bfloat16 hook, which supports NCCL and XCCL only.",
    ),
    Cause(
        "accelerate",
        "test_setting_cpu_affinity",
        "binds processes to the cores near a GPU.",
    ),
    Cause(
        "accelerate",
        "test_multi_device: .*Torch not compiled with CUDA",
        "gets random states from `torch.cuda` in its script; with `torch.sim` instead the script finished.",
    ),
    Cause(
        "accelerate",
        "test_notebook_launcher: .*Timeout",
        "creates its process group in one of two ranks after the other has ended: `simccl` connects when a group is"
        " created, NCCL at its first use.",
    ),
    Cause(
        "pytorch",
        "torch_gpu_stats|device_stats_gpu_from_torch",
        "look for the statistics of CUDA's memory cache; sim does not cache memory.",
    ),
    Cause("pytorch", "nvidia-smi", "runs NVIDIA's command."),
    Cause(
        "pytorch",
        "test_load_from_checkpoint_map_location_automatic",
        "simulates a machine without CUDA devices; sim's devices remain.",
    ),
    Cause(
        "pytorch",
        "test_multiple_trainer_constant_memory_allocated: .*XPASS",
        "is expected to fail on CUDA from torch 2.8 on, and passes on sim.",
    ),
    Cause(
        "pytorch",
        "test_isolate_rng",
        "creates a `torch.cuda.FloatTensor`; Lightning also saves the random states of CUDA's devices only.",
    ),
    Cause(
        "pytorch",
        "test_dataloaders.*Timeout",
        "exceeded two minutes on a busy machine; whether they hang has not been investigated.",
    ),
    Cause(
        "c10d",
        "monitored_barrier_allreduce_hang",
        "expect the message of NCCL's watchdog for a rank that times out; on sim the message is Gloo's.",
    ),
    Cause("c10d", "ProcessGroupNCCL", "creates NCCL's group by its class, which torch without NCCL does not have."),
    Cause(
        "c10d",
        "ddp_profiling_torch_profiler",
        "looks for collectives under the backend's name in the profiler's record, where they have Gloo's name.",
    ),
    Cause(
        "c10d",
        "test_ddp_uneven_inputs: .*Timeout",
        "exceeded the 400 seconds that PyTorch allows, on two cores shared with other work.",
    ),
)


def cause_of(library: str, test: str, message: str, causes: Iterable[Cause] = CAUSES) -> Cause | None:
    """Return the first cause that matches a failure; None if it has not been investigated."""
    matching = (
        cause for cause in causes if cause.library == library and re.search(cause.pattern, f"{test}: {message}")
    )
    return next(matching, None)
