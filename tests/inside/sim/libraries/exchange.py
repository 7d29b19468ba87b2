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
    for file in tests.rglob("*.py"):
        text = file.read_text()
        for pattern, replacement in library.words:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    files = {file for pattern in library.files for file in source.glob(pattern) if library.asks in file.read_text()}
    return sorted(tests / file.relative_to(source) for file in files)
