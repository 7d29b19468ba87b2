"""What the GPU and its machine are: `about.json`."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import platform
import shutil
import subprocess
from typing import Any

import torch

from . import files


def describe() -> dict[str, Any]:
    """Return the GPU's name, driver, capability and memory, and the versions of all installed distributions."""
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no CUDA device here; run this on a machine with an NVIDIA GPU.")
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "driver": _driver(),
        "capability": list(torch.cuda.get_device_capability(0)),
        "memory": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "devices": torch.cuda.device_count(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}",
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": {
            distribution.metadata["Name"]: distribution.version for distribution in importlib.metadata.distributions()
        },
    }


def _driver() -> str | None:
    """Return the version of NVIDIA's driver; None where its tool is missing."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()
    return lines[0].strip() if lines else None


if __name__ == "__main__":
    files.write(files.out_option().out / "about.json", describe())
