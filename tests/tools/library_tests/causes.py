"""Why a library's test fails on sim, as somebody has found who looked into it. Every failure that is kept has one here.

A test keeps the list honest: each cause still has its failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Cause(NamedTuple):
    """Why tests fail."""

    library: str
    """Whose tests, by the name among `LIBRARIES`."""
    pattern: str
    """A regular expression for the test's name and what was said, with a colon between; the first that fits decides."""
    why: str
    """What is behind it, for readers."""


CAUSES = (
    Cause("accelerate", "LocalEntryNotFoundError|offline mode", "load a model from the hub, out of reach in this run."),
    Cause("accelerate", "BF16 all reduce communication hook", "torch gives its bfloat16 hook to NCCL and XCCL alone."),
    Cause(
        "accelerate",
        "test_setting_cpu_affinity",
        "binds processes to the cores near a GPU.",
    ),
    Cause(
        "accelerate",
        "test_multi_device: .*Torch not compiled with CUDA",
        "its script asks `torch.cuda` for random states; with `torch.sim` in its place the script ran to its end.",
    ),
    Cause(
        "accelerate",
        "test_notebook_launcher: .*Timeout",
        "one of two ranks makes its process group and the other has ended: `simccl` connects as a group is made, NCCL"
        " as it is first used.",
    ),
    Cause(
        "pytorch",
        "torch_gpu_stats|device_stats_gpu_from_torch",
        "look for the statistics of the parts of CUDA's cache, which sim has not: it keeps no memory back.",
    ),
    Cause("pytorch", "nvidia-smi", "asks NVIDIA's command."),
    Cause(
        "pytorch",
        "test_load_from_checkpoint_map_location_automatic",
        "pretends that there is no CUDA device; sim's stay.",
    ),
    Cause(
        "pytorch",
        "test_multiple_trainer_constant_memory_allocated: .*XPASS",
        "is expected to fail on CUDA from torch 2.8 on, and passes on sim.",
    ),
    Cause(
        "pytorch",
        "test_isolate_rng",
        "makes a `torch.cuda.FloatTensor`, and Lightning keeps the random states of CUDA's devices alone.",
    ),
    Cause(
        "pytorch",
        "test_dataloaders.*Timeout",
        "ran past two minutes on a busy machine; whether they hang has not been looked into.",
    ),
    Cause(
        "c10d",
        "monitored_barrier_allreduce_hang",
        "want the words of NCCL's watchdog for a rank that waits in vain; on sim it is told with Gloo's.",
    ),
    Cause("c10d", "ProcessGroupNCCL", "makes NCCL's group by its class, which torch without NCCL has not."),
    Cause(
        "c10d",
        "ddp_profiling_torch_profiler",
        "looks in the profiler's record for collectives under the backend's name; there they have Gloo's.",
    ),
    Cause(
        "c10d",
        "test_ddp_uneven_inputs: .*Timeout",
        "had not ended after the 400 seconds that PyTorch gives it, on two cores that others used as well.",
    ),
)


def cause_of(library: str, test: str, said: str, causes: Iterable[Cause] = CAUSES) -> Cause | None:
    """The first cause that fits a failure; nothing where nobody has looked into it."""
    fits = (cause for cause in causes if cause.library == library and re.search(cause.pattern, f"{test}: {said}"))
    return next(fits, None)
