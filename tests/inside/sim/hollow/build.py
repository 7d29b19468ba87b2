"""The hollow devices' runtime, compiled for the installed torch, and the environment in which a process finds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent


class NoRuntimeError(Exception):
    """There can be none here; the message says why."""


def built(folder: Path) -> Path:
    """Compile the runtime, and return the shared object, under the name by which PyTorch opens the driver.

    Args:
        folder: where it is to lie.

    Raises:
        NoRuntimeError: torch is no CUDA build from PyPI, or there is no compiler.
    """
    headers = list(Path(sysconfig.get_path("purelib")).glob("nvidia/*/include/cuda_runtime_api.h"))
    if not headers:
        raise NoRuntimeError("this build of PyTorch has no CUDA code, or not the runtime that PyPI has for it")
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoRuntimeError("there is no g++")
    made = folder / "libcuda.so.1"
    # Last of all places: releases of CUDA that bring `crt/host_defines.h` themselves are to find their own.
    places = [f"-I{headers[0].parent}", "-idirafter", str(HERE)]
    command = [compiler, "-O1", "-shared", "-fPIC", "-w", f"-Wl,-soname,{made.name}", *places]
    subprocess.run([*command, *map(str, sorted(HERE.glob("*.cpp"))), "-o", str(made)], check=True)
    return made


def environment(runtime: Path) -> dict[str, str]:
    """The environment of a process whose CUDA devices are hollow."""
    return {**os.environ, "LD_PRELOAD": str(runtime)}
