"""What is exchanged in a library's tests so that those written for CUDA are about sim; their code is not kept here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """One library's tests."""

    tests: str
    """Their folder in its checkout, or in its source distribution."""
    files: Sequence[str]
    """Those that are run, as patterns below it."""
    words: Sequence[tuple[str, str]] = ()
    """Regular expressions, and what stands in their place."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables by which its tests choose those that need a device."""
    options: Sequence[str] = ()
    """Further options for pytest."""
    asks: str = ""
    """What a file holds that has a test which asks for a device; of such tests, none runs without one."""
    beside: Sequence[str] = ()
    """Files of the checkout that are copied and exchanged with its tests."""
    alone: str = ""
    """The environment variable by which it runs those tests that need a process each."""


_CUDA = (
    (r"(['\"])cuda(?=[:'\"])", r"\1sim"),
    (r"\bcuda(?=:\d)", "sim"),
    (r"\btorch\.cuda\.", "torch.sim."),
    (r"\.cuda\(", ".sim("),
    (r"\btorch\.is_autocast_enabled\(\)", 'torch.is_autocast_enabled("sim")'),  # without an argument it is CUDA's
    (r"(\blightning\.\w+\.accelerators)\.cuda(?= import CUDAAccelerator$|\.CUDAAccelerator\b)", r"\1"),
    (r"\bCUDAAccelerator\b", "SimAccelerator"),
    (r"(['\"])nccl(?=['\"])", r"\1simccl"),
)


# PyTorch's tests of collectives, groups and DDP are to be mixed into a class that says how their ranks are started.
_RANKS = """

MultiProcessTestCase.__test__ = False

class TestRanks(TestDistBackend, DistributedTest._DistTestBase):
    __test__ = True
    runTest = None  # by which pytest collects, and torch 2.1 looks for it

    def setUp(self):
        super().setUp()
        self._spawn_processes()
"""
_C10D = (
    (r"\A([\s\S]*^class DistributedTest:[\s\S]*)\Z", rf"\1{_RANKS}"),
    (r"\btorch\.testing\._internal\.common_distributed\b", "common_distributed"),
    (r"from torch\.cuda\.amp import (autocast, GradScaler|GradScaler, autocast)", "autocast = torch.sim.amp.autocast"),
    (r"\bGradScaler\(\)", 'torch.amp.GradScaler("sim")'),
    (r"\btorch\.cuda\.nccl\.version\(\)", "(99,)"),
    (r"\b(dist|c10d)\.is_nccl_available\(\)", "True"),
    (r"((?:== |backend=)dist\.Backend)\.NCCL\b", r"\1.SIMCCL"),  # not in the lists of those that the profiler knows
    (r"\bTEST_CUDA\b(?!,)", "True"),
    (r"^(import torch\.)cuda\.nccl$", r"\1distributed"),
    *_CUDA,
)

_TIMEOUT = ("--timeout", "120")


def _of_lightning(tests: str) -> Library:
    # Its own variable, under both names that it has had: those tests alone that ask for a GPU.
    settings = {"RUN_ONLY_CUDA_TESTS": "1", "PL_RUN_CUDA_TESTS": "1"}
    options = (*_TIMEOUT, "--import-mode=prepend")
    return Library(tests, ("**/test_*.py",), _CUDA, settings, options, "min_cuda_gpus", "PL_RUN_STANDALONE_TESTS")


LIBRARIES = {
    # These ask `accelerate.test_utils` for the device, which is answered; a few name CUDA, and some fill its memory.
    "accelerate": Library(
        "tests", ("test_*.py",), _CUDA, {"HF_HUB_OFFLINE": "1", "REPROS_SIM_MEMORY": str(2 * 2**30)}, _TIMEOUT
    ),
    # They take the device's name from a variable; the marks are those of its own settings. Nothing is compiled: its
    # kernels would be tried at each call, and for sim TorchInductor fails after a second each time.
    "bitsandbytes": Library(
        "tests",
        ("test_*.py",),
        settings={"BNB_TEST_DEVICE": "sim", "TORCHDYNAMO_DISABLE": "1"},
        options=(*_TIMEOUT, "-m", "not slow and not benchmark and not deprecated", "-k", "not torch_compile"),
        asks="get_available_devices",
    ),
    # In the wheel: the checkout is an environment's folder torch/testing/_internal.
    "c10d": Library(
        "distributed",
        ("distributed_test.py",),
        _C10D,
        {"BACKEND": "simccl", "WORLD_SIZE": "2", "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60"},
        _TIMEOUT,
        asks="class DistributedTest:",
        beside=("common_distributed.py",),
    ),
    "fabric": _of_lightning("tests/tests_fabric"),
    "pytorch": _of_lightning("tests/tests_pytorch"),
}


def exchanged(library: Library, checkout: Path, folder: Path) -> list[Path]:
    """Copies the tests into a folder, with the words exchanged, and returns the files to run.

    The checkout's other folders (examples, say) are there as links.
    """
    source, tests = checkout / library.tests, folder / library.tests
    shutil.copytree(source, tests, symlinks=True)
    for place in checkout.iterdir():
        if place.is_dir() and not (folder / place.name).exists():
            (folder / place.name).symlink_to(place)
    beside = [Path(shutil.copy(checkout / name, folder)) for name in library.beside]
    for file in [*tests.rglob("*.py"), *beside]:
        text = file.read_text()
        for pattern, replacement in library.words:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    files = {file for pattern in library.files for file in source.glob(pattern) if library.asks in file.read_text()}
    return sorted(tests / file.relative_to(source) for file in files)
