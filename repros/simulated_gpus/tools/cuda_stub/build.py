"""Compilation of the CUDA stub for the installed torch, and the environ in which a process uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent


class NoRuntimeError(Exception):
    """The stub cannot be built here; the message is the reason."""


def build_stub(folder: Path) -> Path:
    """Compile the stub and return the shared object, which has the name of the driver that PyTorch opens.

    Args:
        folder: the folder for the shared object.

    Raises:
        NoRuntimeError: torch is not a CUDA build from PyPI, or there is no compiler.
    """
    headers = list(Path(sysconfig.get_path("purelib")).glob("nvidia/*/include/cuda_runtime_api.h"))
    if not headers:
        raise NoRuntimeError("this build of PyTorch has no CUDA code, or not the runtime that PyPI has for it")
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoRuntimeError("there is no g++")
    made = folder / "libcuda.so.1"
    # Searched last, because some releases of CUDA have a `crt/host_defines.h` of their own.
    places = [f"-I{headers[0].parent}", "-idirafter", str(HERE)]
    command = [compiler, "-O1", "-shared", "-fPIC", "-w", f"-Wl,-soname,{made.name}", *places]
    subprocess.run([*command, *map(str, sorted(HERE.glob("*.cpp"))), "-o", str(made)], check=True)
    return made


def stub_environ(shared_object: Path) -> dict[str, str]:
    """Return the environ of a process that runs on the stub."""
    return {**os.environ, "LD_PRELOAD": str(shared_object), "REPROS_SIM": ""}
