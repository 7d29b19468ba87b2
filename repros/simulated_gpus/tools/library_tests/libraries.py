"""The libraries' tests that are run; the tests themselves are not kept here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """One library's tests."""

    tests: str
    """The tests' folder in the checkout or source distribution."""
    files: Sequence[str]
    """Patterns, relative to that folder, of the files to run."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that select the tests that need a device."""
    options: Sequence[str] = ()
    """Further options for pytest."""
    marker: str = ""
    """Text of files with tests that need a GPU; other files are left out, and no test is run again without one."""
    settings_by_skip: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment variables with which a test runs again, in a process of its own, by the reason it was skipped for."""
    files_in_a_process: int = 1
    """How many files run in one process; each runs alone if that process does not finish."""
    warnings: str = "ignore"
    """Value of PYTHONWARNINGS; some tests count the warnings that they catch."""


_TIMEOUT = ("--timeout", "120")
# Settings of this checkout must not apply to PyTorch's tests, nor its fixtures.
_PLAIN = ("-c", os.devnull, "--noconftest")

_OF_PEFT = tuple(
    f"test_{name}.py"
    for name in (
        *("boft", "common_gpu", "custom_models", "helpers", "initialization", "lora_megatron", "mixed"),
        *("riemannian_lora", "supertuning", "tuners_utils"),
    )
)
# Hundreds of configurations have dozens of tests each, of which those of training, bfloat16 and placement are run.
_MODELS_OF_PEFT = (
    "not TestPeftCustomModel and not TestPeftFsdpStateDict"
    " or test_training_custom_models or test_forward_bfloat16 or test_peft_model_device_map"
)


_OF_TRANSFORMERS = (
    *("trainer/test_*.py", "fsdp/test_*.py", "tensor_parallel/test_*.py", "generation/test_fsdp.py"),
    *("extended/test_trainer_ext.py", "utils/test_cache_utils.py", "utils/test_modeling_utils.py"),
)


def _of_lightning(tests: str) -> Library:
    # Lightning's variable, under both names that it has had, selects the tests that need a GPU.
    settings = {"RUN_ONLY_CUDA_TESTS": "1", "PL_RUN_CUDA_TESTS": "1", "OMP_NUM_THREADS": "1"}
    # Many start their ranks several times.
    options = ("--timeout", "240", "--import-mode=prepend")
    alone, four = {"PL_RUN_STANDALONE_TESTS": "1"}, {"REPROS_SIM_DEVICES": "4"}
    settings_by_skip = {
        "Requires: [Standalone execution]": alone,
        "Requires: [GPUs>=4]": four,
        "Requires: [GPUs>=4 + Standalone execution]": {**alone, **four},
    }
    return Library(tests, ("**/test_*.py",), settings, options, "min_cuda_gpus", settings_by_skip, 5)


_OF_TORCH = (
    *("cuda", "cuda_multigpu", "torch", "optim", "autograd", "nn", "indexing", "view_ops", "shape_ops"),
    *("scatter_gather_ops", "sort_and_select", "tensor_creation_ops", "type_promotion", "segment_reductions"),
    *("serialization", "transformers", "fake_tensor", "native_mha", "dlpack", "dataloader", "foreach"),
    *("multiprocessing", "cuda_sanitizer", "cuda_trace"),
)
# Some 75,000 combinations of sizes, half of them skipped.
_NOT_OF_TORCH = "vs_math_ref or vs_math_cpu"

LIBRARIES = {
    # Some fill the device's memory.
    "accelerate": Library(
        "tests",
        ("test_*.py", "fsdp/test_*.py", "tp/test_*.py"),
        {"HF_HUB_OFFLINE": "1", "REPROS_SIM_MEMORY": str(2 * 2**30)},
        _TIMEOUT,
    ),
    # Part of torch's wheel, except the class that starts their ranks: the checkout is that of this project.
    "c10d": Library(
        "repros/simulated_gpus/tools/library_tests",
        ("ranks.py",),
        {
            "BACKEND": "nccl",
            "WORLD_SIZE": "4",
            "REPROS_SIM_DEVICES": "4",
            "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60",
            "OMP_NUM_THREADS": "1",
        },
        (*_TIMEOUT, *_PLAIN),
        marker="DistributedTest",
    ),
    "fabric": _of_lightning("tests/tests_fabric"),
    # Files whose tests define their models and run them on whichever device there is.
    "peft": Library("tests", _OF_PEFT, {"HF_HUB_OFFLINE": "1"}, (*_TIMEOUT, "-c", os.devnull, "-k", _MODELS_OF_PEFT)),
    "pytorch": _of_lightning("tests/tests_pytorch"),
    "torchmetrics": Library(
        "tests/unittests",
        ("**/test_*.py",),
        {},
        (*_TIMEOUT, "-c", os.devnull, "-k", "gpu or cuda or device"),
        marker="cuda.is_available",
        files_in_a_process=20,
    ),
    "transformers": Library(
        "tests",
        _OF_TRANSFORMERS,
        {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        (*_TIMEOUT, "-c", os.devnull),
        settings_by_skip={"test requires 0 or 1 accelerator": {"REPROS_SIM_DEVICES": "1"}},
    ),
    # PyTorch's repository: those for any device, on CUDA, and those of CUDA.
    "torch": Library(
        "test",
        (*(f"test_{name}.py" for name in _OF_TORCH), "nn/test_*.py"),
        {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cuda", "OMP_NUM_THREADS": "1", "REPROS_SIM_MEMORY": str(8 * 2**30)},
        (*_TIMEOUT, "-k", f"cuda and not ({_NOT_OF_TORCH})", "-c", os.devnull),
        marker="cuda",
        warnings="default",
    ),
}


def find_tests(library: Library, checkout: Path) -> list[Path]:
    """Return the files with tests that need a device."""
    folder = checkout / library.tests
    return sorted({file for name in library.files for file in folder.glob(name) if library.marker in file.read_text()})
