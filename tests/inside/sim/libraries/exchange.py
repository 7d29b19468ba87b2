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


_CUDA = (
    (r"(['\"])cuda(?=[:'\"])", r"\1sim"),
    (r"\bcuda(?=:\d)", "sim"),
    (r"\btorch\.cuda\.", "torch.sim."),
    (r"\btorch\.is_autocast_enabled\(\)", 'torch.is_autocast_enabled("sim")'),  # without an argument it is CUDA's
    (r"\bCUDAAccelerator\b", "SimAccelerator"),
    (r"(['\"])nccl(?=['\"])", r"\1simccl"),
)
# Its own variable, under both names that it has had: those tests alone that ask for a GPU.
_ON_GPUS = {"RUN_ONLY_CUDA_TESTS": "1", "PL_RUN_CUDA_TESTS": "1"}

LIBRARIES = {
    # These ask `accelerate.test_utils` for the device, which the plugin answers; not a word is exchanged.
    "accelerate": Library("tests", ("test_*.py",)),
    "fabric": Library("tests/tests_fabric", ("**/test_*.py",), _CUDA, _ON_GPUS, ("--import-mode=prepend",)),
    "pytorch": Library("tests/tests_pytorch", ("**/test_*.py",), _CUDA, _ON_GPUS, ("--import-mode=prepend",)),
}


def exchanged(library: Library, checkout: Path, folder: Path) -> list[Path]:
    """Copies the tests into a folder, with the words exchanged, and returns the files to run."""
    source = checkout / library.tests
    tests = folder / library.tests
    shutil.copytree(source, tests, symlinks=True)
    for file in tests.rglob("*.py"):
        text = file.read_text()
        for pattern, replacement in library.words:
            text = re.sub(pattern, replacement, text)
        file.write_text(text)
    return sorted({file for pattern in library.files for file in tests.glob(pattern)})
