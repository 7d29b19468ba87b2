"""The libraries' tests that are run, and what is changed in copies of them; the tests themselves are not kept here."""

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
    """The tests' folder in the checkout or source distribution."""
    files: Sequence[str]
    """Patterns, relative to that folder, of the files to run."""
    substitutions: Sequence[tuple[str, str]] = ()
    """Regular expressions with their replacements."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that select the tests that need a device."""
    options: Sequence[str] = ()
    """Further options for pytest."""
    marker: str = ""
    """Text of files with tests that need a device; other files are left out, and no test is run again without sim."""
    extra_files: Sequence[str] = ()
    """Further files of the checkout that are copied with substitutions."""
    standalone_variable: str = ""
    """The environment variable that enables the tests that need a process each."""


# PyTorch's tests of collectives, groups and DDP are a mixin for a class that starts their ranks.
_RANKS = """

MultiProcessTestCase.__test__ = False

class TestRanks(TestDistBackend, DistributedTest._DistTestBase):
    __test__ = True
    runTest = None  # pytest collects the class by it, and torch 2.1 reads it

    def setUp(self):
        super().setUp()
        self._spawn_processes()
"""
_C10D = (
    (r"\A([\s\S]*^class DistributedTest:[\s\S]*)\Z", rf"\1{_RANKS}"),
    (r"\btorch\.testing\._internal\.common_distributed\b", "common_distributed"),
)

_TIMEOUT = ("--timeout", "120")


def _of_lightning(tests: str) -> Library:
    # Lightning's variable, under both names that it has had, selects the tests that need a GPU.
    settings = {"RUN_ONLY_CUDA_TESTS": "1", "PL_RUN_CUDA_TESTS": "1"}
    options = (*_TIMEOUT, "--import-mode=prepend")
    return Library(tests, ("**/test_*.py",), (), settings, options, "min_cuda_gpus", "PL_RUN_STANDALONE_TESTS")


LIBRARIES = {
    # Some fill the device's memory.
    "accelerate": Library(
        "tests", ("test_*.py",), (), {"HF_HUB_OFFLINE": "1", "REPROS_SIM_MEMORY": str(2 * 2**30)}, _TIMEOUT
    ),
    # They read the device's name from a variable; the marks are those of its own settings. Compilation is off, because
    # it would be tried at each call, and TorchInductor fails for the simulated device after a second each time.
    "bitsandbytes": Library(
        "tests",
        ("test_*.py",),
        environ={"BNB_TEST_DEVICE": "cuda", "TORCHDYNAMO_DISABLE": "1"},
        options=(*_TIMEOUT, "-m", "not slow and not benchmark and not deprecated", "-k", "not torch_compile"),
        marker="get_available_devices",
    ),
    # Part of the wheel: the checkout is an environment's folder torch/testing/_internal.
    "c10d": Library(
        "distributed",
        ("distributed_test.py",),
        _C10D,
        {"BACKEND": "nccl", "WORLD_SIZE": "2", "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60"},
        _TIMEOUT,
        marker="class DistributedTest:",
        extra_files=("common_distributed.py",),
    ),
    "fabric": _of_lightning("tests/tests_fabric"),
    "pytorch": _of_lightning("tests/tests_pytorch"),
}


def copy_tests(library: Library, checkout: Path, folder: Path) -> list[Path]:
    """Copy the tests into a folder with substitutions, and return the files to run.

    The checkout's other folders (examples, say) are linked.
    """
    source, tests = checkout / library.tests, folder / library.tests
    shutil.copytree(source, tests, symlinks=True)
    for place in checkout.iterdir():
        if place.is_dir() and not (folder / place.name).exists():
            (folder / place.name).symlink_to(place)
    extra_files = [Path(shutil.copy(checkout / name, folder)) for name in library.extra_files]
    for file in [*tests.rglob("*.py"), *extra_files]:
        text = file.read_text()
        for pattern, replacement in library.substitutions:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    files = {file for pattern in library.files for file in source.glob(pattern) if library.marker in file.read_text()}
    return sorted(tests / file.relative_to(source) for file in files)
