"""The machine of a measurement, and its load by other processes."""

from __future__ import annotations

import compileall
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import psutil

from repros.model import Environment

_QUIET = 20.0
"""Percent of all processors that other processes may use on a quiet machine."""
_SAMPLE_SECONDS = 2.0


class Machine:
    """The machine's load before and after the measurements."""

    def __init__(self) -> None:
        """Sample the load before."""
        self._before = _sample_load()

    def describe(self) -> dict[str, Any]:
        """Sample the load again; return both samples and the machine's properties."""
        before, after = self._before, _sample_load()
        return {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "memory": psutil.virtual_memory().total,
            "before": before,
            "after": after,
            "busy": max(before["others_percent"], after["others_percent"]) > _QUIET,
        }


def _sample_load() -> dict[str, Any]:
    # This process only waits meanwhile, so the load is that of other processes.
    return {"others_percent": psutil.cpu_percent(_SAMPLE_SECONDS), "load": [round(load, 2) for load in os.getloadavg()]}


def ensure_bytecode(environment: Environment, *, own: bool) -> str:
    """Compile the libraries unless they are: else every process of a run by hand compiles what it imports.

    Args:
        environment: The environment under test.
        own: Whether the engine made it, so that files may be written to it.
    """
    code = "import importlib.util as u; print(u.find_spec('torch').origin)"
    found = subprocess.run([str(environment.python), "-c", code], capture_output=True, text=True, check=True)
    torch = Path(found.stdout.strip()).parent
    if is_compiled(torch):
        return "there"
    if not own:
        return "missing: every process of a run by hand or cold compiles what it imports"
    subprocess.run(
        [str(environment.python), "-m", compileall.__name__, "-q", "-j", "0", str(torch.parent)], check=False
    )
    return "compiled now"


def is_compiled(package: Path) -> bool:
    """Return whether most of a package's modules have bytecode."""
    return len(list(package.glob("__pycache__/*.pyc"))) >= len(list(package.glob("*.py"))) / 2
