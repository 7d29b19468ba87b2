"""The builds of torch that a stack's environment may have, and the choice between them.

The package index has one build of each release: on x86-64 Linux, the CUDA build. PyTorch's own index has the CPU build,
a tenth of its size, under the same release with the local version `+cpu`. A machine without a GPU takes the latter if
that index answers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from repros.engine.environments.index import answers
from repros.model.errors import ReprosError
from repros.model.settings import TORCH_BUILD
from repros.model.stack import Stack

BUILDS_OF_THEIR_OWN = ("torch", "torchaudio", "torchvision")
"""Distributions with different files of one version on different indexes."""

VARIABLE = "REPROS_CPU_INDEX"
"""Environment variable with the address of the index of CPU builds."""

_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_SECONDS = 2.0
"""Maximum time to wait for the index of CPU builds."""
BACKEND = "UV_TORCH_BACKEND"
"""uv's variable, by which it takes torch from PyTorch's own index alone."""
_GPUS = Path("/proc/driver/nvidia/gpus")
"""The device folder of NVIDIA's driver."""
_WINDOWS_GPU = Path("/dev/dxg")
"""The GPU of Windows, in its subsystem for Linux."""


@dataclass(frozen=True)
class Build:
    """One build of torch, for all packages of a stack that have builds of their own."""

    name: str = ""
    """Part of the name of the environment's folder; empty for the build of the package index."""
    reason: str = ""
    """Why an environment has it: a clause for the line that announces it."""
    pages: tuple[str, ...] = ()
    """Addresses of pages with links to its wheels, in addition to the package index."""
    may_be_absent: bool = False
    """Whether the build of the package index takes its place if the pages lack a release."""


def count_gpus() -> int:
    """Return the number of NVIDIA's GPUs that the driver has on this machine."""
    return len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0


def possible_builds(stack: Stack) -> tuple[Build, ...]:
    """Return the builds that a stack's environment may have here, best first; the network is not used.

    uv's variable `UV_TORCH_BACKEND` precedes the project's setting, and both precede the machine's GPUs.

    Raises:
        ReprosError: a wrong address of the index of CPU builds.
    """
    torch = stack.pins.get("torch")
    if torch is None or "+" in torch.version:
        return (Build(),)
    if backend := os.environ.get(BACKEND):
        return (Build(backend, f"{BACKEND}={backend}"),)
    if stack.torch_build != "auto":
        reason = f"{TORCH_BUILD} = {stack.torch_build!r}"
        return (Build("cpu", reason, _pages(stack)) if stack.torch_build == "cpu" else Build(reason=reason),)
    if count_gpus() or _WINDOWS_GPU.exists():
        return (Build(reason="this machine has a GPU"),)
    if sys.platform != "linux":
        return (Build(),)  # the package index has no CUDA build for it
    return Build("cpu", "no GPU here", _pages(stack), may_be_absent=True), Build()


def choose(builds: Sequence[Build], is_ready: Callable[[Build], bool]) -> Build:
    """Return the build of an environment: the best one that is ready, or else the best one that can be installed.

    The index of CPU builds is asked only if there is a choice, once per process and for at most two seconds.

    Args:
        builds: the possible builds, best first.
        is_ready: whether an environment with a build exists.
    """
    for build in builds:
        if is_ready(build):
            return build
    best = builds[0]
    if best.may_be_absent and not _cpu_index_answers():
        return Build(reason=f"no GPU here, but {_cpu_index()} does not answer")
    return best


def without_cpu_build(stack: Stack) -> Build:
    """Return the build that is installed if the index of CPU builds lacks the stack's release."""
    return Build(reason=f"no GPU here, but {_cpu_index()} has no torch {stack.pins['torch'].version}")


def _pages(stack: Stack) -> tuple[str, ...]:
    """Return the pages of the index of CPU builds with the files of a stack's packages, and of no others.

    As an index in addition to the package index, it would also decide about its old copies of further packages.
    """
    return tuple(f"{_cpu_index()}/{name}/" for name in BUILDS_OF_THEIR_OWN if name in stack.pins)


def _cpu_index() -> str:
    address = os.environ.get(VARIABLE) or _CPU_INDEX
    if not address.startswith(("https://", "http://")):
        raise ReprosError(f"{VARIABLE}={address!r} is no address of an index; expected one such as {_CPU_INDEX}.")
    return address.rstrip("/")


_asking = Lock()


def _cpu_index_answers() -> bool:
    with _asking:  # threads that make several environments ask once
        return _has_answered(f"{_cpu_index()}/torch/")


_has_answered = cache(lambda address: answers(address, _SECONDS))
