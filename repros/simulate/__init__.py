"""Simulated GPUs for any program: the environment variables that make `cuda` the simulated accelerator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from repros import simulated_gpus
from repros.inside import contract
from repros.model.errors import ReprosError, refuse_unknown
from repros.simulated_gpus import startup
from repros.simulated_gpus import variables as names
from repros.simulated_gpus.memory_size import parse_size
from repros.simulated_gpus.profiles import PROFILES
from repros.simulated_gpus.real_gpus import real_gpu_count

BIN = Path(simulated_gpus.__file__).parent / "bin"
"""A folder with an `nvidia-smi` that lists the simulated GPUs."""
MOST_GPUS = 64


def variables(
    gpus: int,
    *,
    memory: int | None = None,
    like: str | None = None,
    cpu_random: bool = False,
    hide_gpus: bool = False,
) -> dict[str, str]:
    """Return the environment variables of a program with simulated GPUs; its children inherit them.

    Args:
        gpus: number of GPUs, 1 to 64.
        memory: bytes per GPU; default: the memory of the profile or the machine.
        like: name of a profile, such as `h100`.
        cpu_random: whether devices use the CPU's random numbers, as a run without GPUs would.
        hide_gpus: whether real GPUs may be hidden.

    Raises:
        ReprosError: the profile or the number is unknown, or a real GPU may not be hidden.
    """
    if not 1 <= gpus <= MOST_GPUS:
        raise ReprosError(f"--gpus {gpus}: expected a number from 1 to {MOST_GPUS}.")
    if like is not None:
        refuse_unknown("profile", [like], PROFILES)
    if not hide_gpus and (real := real_gpu_count()):
        raise ReprosError(f"this machine has {real} real GPU(s); --hide-gpus simulates GPUs instead.")
    chosen = {contract.SIM: "cuda", names.DEVICES: str(gpus)}
    if memory is not None:
        chosen[names.MEMORY] = str(memory)
    if like is not None:
        chosen[names.LIKE] = like
    if cpu_random:
        chosen[names.RANDOM] = "cpu"
    if hide_gpus:
        chosen[names.HIDE_GPUS] = "1"
    return chosen


def program_environ(environ: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return all environment variables of a program with simulated GPUs, which `nvidia-smi` lists as well.

    Args:
        environ: the current variables; those for simulated GPUs are dropped.
        chosen: the result of :func:`variables`.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(contract.SIM)}
    python_path, path = kept.get("PYTHONPATH"), kept.get("PATH", os.defpath)
    places = {"PYTHONPATH": contract.python_path(python_path), "PATH": contract.path_with(str(BIN), path)}
    return {**kept, **chosen, **places}


def simulate_in_this_process() -> None:
    """Add the devices of the variables to this process, before it imports torch, and to its children.

    Raises:
        SimUnavailableError: torch is already imported.
    """
    startup.install()
    os.environ[contract.SIM] = "cuda"
    os.environ["PYTHONPATH"] = contract.python_path(os.environ.get("PYTHONPATH"))


def parse_memory(text: str, option: str = "--memory") -> int:
    """Return the bytes of a size such as `24GB`, `512MB` or `80GiB`; a gigabyte is 2^30 bytes.

    Args:
        text: the size.
        option: name of the option, for the error.

    Raises:
        ReprosError: the text is not a size.
    """
    size = parse_size(text)
    if size is None:
        raise ReprosError(f"{option} {text}: expected a size such as 24GB or 512MB.")
    return size
