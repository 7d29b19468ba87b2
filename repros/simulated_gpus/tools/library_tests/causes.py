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
        "test_notebook_launcher",
        "makes a group in one rank after the other has ended: NCCL connects at the first collective, a simulated group"
        " at once, and waits.",
    ),
    Cause(
        "accelerate",
        "test_setting_cpu_affinity",
        "asks NVIDIA's driver, through nvidia-ml-py, which cores are near a GPU.",
    ),
    Cause(
        "fabric",
        "load_full_state_dict_into_sharded_model",
        "compares weights that it leaves uninitialised (`empty_init`) in each process.",
    ),
    Cause("pytorch", "nvidia-smi", "asks NVIDIA's driver, by `nvidia-smi`, for utilization and temperature."),
    Cause(
        "pytorch",
        "XPASS.*torch >= 2.8",
        "passes, but is marked as failing since torch 2.8, with which a GPU holds 512 bytes more after training.",
    ),
    Cause(
        "peft",
        "LocalEntryNotFoundError|huggingface.co",
        "load a model of the hub that hub.py has no replacement for.",
    ),
    Cause(
        "peft",
        "lora_opt_timing",
        "measure the time of a model with 125 million parameters, which the one of hub.py does not have.",
    ),
    Cause("peft", "requires bitsandbytes", "load a model in 4 or 8 bits, with bitsandbytes, which was not installed."),
    Cause(
        "torchmetrics",
        "FrechetInceptionDistance",
        "imports a metric that torchmetrics has only where torch-fidelity is installed, which it was not.",
    ),
    Cause(
        "transformers",
        "LocalEntryNotFoundError|OfflineMode|huggingface.co",
        "load a model or data of the hub that hub.py has no replacement for.",
    ),
    Cause(
        "transformers",
        "Could not resolve the process group",
        "make a mesh of GPUs from a group of Gloo's, which had lost its name: repaired, and not run to its end since.",
    ),
    Cause(
        "transformers",
        "histogram_cpu",
        "call `histc` with integers, which CUDA's kernel takes and the CPU's does not: repaired, and not run since.",
    ),
    Cause(
        "transformers",
        "test_trainer_fsdp",
        "compare 30 tokens with the 40 that `generate` of this release makes of this model, on the CPU as well.",
    ),
    Cause(
        "transformers",
        "bnb|_(8|32)bit|_lion|_ademamix",
        "use bitsandbytes, which calls CUDA kernels of its own.",
    ),
    Cause(
        "transformers",
        "test_evaluat|test_galore_lr_display|test_resume_from_interrupted",
        "expect the steps and the losses of one GPU, with which they pass; with two, the Trainer uses `DataParallel`.",
    ),
    Cause(
        "transformers",
        "test_galore_adafactor",
        "expect a peak of 650 to 700 MB: it is 634 here, without cuBLAS's workspaces.",
    ),
    Cause(
        "torch",
        "CUDA graphs are not simulated|test_graph_error|graphsafe",
        "use CUDA graphs, which were refused: recorded and replayed now, and not run since.",
    ),
    Cause(
        "torch",
        "memory_plots|memory_snapshot|memory_profiler_viz|notifies_oom|test_cycles",
        "read the history of a device's memory, which is not kept, as a warning says.",
    ),
    Cause("torch", "allocator_settings", "ask the allocator to round sizes; a simulated GPU's does not."),
    Cause(
        "torch",
        r"test_events\b|events_wait|multi_gpu_query|to_non_blocking|event_nogil|dlpack_convert_default_stream",
        "expect work to be still under way when a call returns; on a simulated GPU it is done.",
    ),
    Cause("torch", "mta_called=False", "look for the names of CUDA's kernels in a profile, which has none here."),
    Cause(
        "torch",
        "0dim_tensor_overload_exception",
        "expects the refusal of a number of the host, which the CPU's kernel for lists of tensors takes.",
    ),
    Cause(
        "torch",
        "foreach_sigmoid.*complex128",
        "passes, but is marked as failing on CUDA, whose kernel for lists lacks the type.",
    ),
    Cause("torch", "test_cuda_trace", "observe calls of CUDA's driver, of which a simulated GPU makes none."),
    Cause(
        "torch",
        "test_multiprocessing.*(ipc_deadlock|sharing|simple)",
        "share a GPU's memory between processes by CUDA IPC; here a tensor that is sent is copied.",
    ),
    Cause(
        "torch",
        "test_transformers.*(No available kernel|nested_fails_on_padding|broadcasted NT|choice_type_nested)",
        "demand a fused algorithm for nested tensors or a trained mask, for which simulated GPUs have only the one made"
        " of operators.",
    ),
    Cause(
        "torch",
        "(native_multihead|fused_kernels_packed_accuracy|flash_attention_grad|packed_accuracy_against_math).*not close",
        "compare float16 within CUDA's rounding; the CPU's kernels round more often.",
    ),
    Cause(
        "torch",
        "transform_bias_rescale_qkv_nested",
        "expects rows filled up to a multiple of eight, as CUDA's kernel for nested tensors leaves them.",
    ),
    Cause("torch", "Timeout", "compute for more than 120 seconds on the host."),
    Cause(
        "torch",
        "_grad_and_gradgrad",
        "expect cuDNN's refusal of a recurrent layer's second derivative: made now, and not run since.",
    ),
    Cause(
        "torch",
        "(non|un)supported_dtypes",
        "expect CUDA to lack an operator for a type that the CPU has: refused now, and not run since.",
    ),
    Cause(
        "torch",
        "test_embedding_backward_cuda_float16",
        "adds sparse gradients: the sum is right, and has one entry for each row where CUDA's has one for each addend.",
    ),
    Cause(
        "torch",
        "per_sample_weights_failures",
        "expect the words of a CUDA kernel's refusal; the CPU's kernel refuses in others.",
    ),
    Cause(
        "torch",
        "not implemented for '?BFloat16",
        "use an operator in bfloat16, for which this CPU build has no kernel.",
    ),
    Cause(
        "torch",
        "byte_mask",
        "count warnings about masks of uint8; a shape is computed twice, on the device and by the CPU's kernel.",
    ),
    Cause("torch", "layout SparseCs", "use compressed sparse tensors, which are refused."),
    Cause("torch", "lazy_clone|_cow_", "copy memory on write, which asks for an allocator's plain addresses."),
    Cause(
        "torch",
        "storage_meta_errors",
        "expect a refusal because of the storage's device, where CUDA IPC as a whole is refused.",
    ),
    Cause(
        "torch",
        "quantized|test_flatten|test_ravel",
        "use quantized tensors, of which simulated GPUs held none: repaired, and not run since.",
    ),
    Cause(
        "torch",
        "signal_window_functions",
        "compute windows in float16, which the CPU's kernels round more often: a simulated GPU has the CPU's values.",
    ),
    Cause(
        "torch",
        "randperm_device_compatibility",
        "draws a permutation of nothing with a generator of the CPU, at which CUDA's kernel does not look.",
    ),
    Cause("torch", "exponential_no_zero", "draw zeros, which the CPU's kernel in float16 gives and CUDA's avoids."),
    Cause(
        "torch", "deterministic_empty_cuda_uint64", "fill uint64 memory, for which PyTorch's function on the CPU fails."
    ),
    Cause("torch", "cuda_vitals", "asks for a count of CUDA's first use that CUDA's library keeps."),
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
