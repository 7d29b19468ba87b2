"""What the figures were taken on, and whether somebody else was at work there."""

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
"""Percent of all processors that others may use on a machine that is called quiet."""
_LOOK = 2.0


class Machine:
    """The machine before and after."""

    def __init__(self) -> None:
        """Look at it before."""
        self._before = _look()

    def told(self) -> dict[str, Any]:
        """Look at it again and return both."""
        before, after = self._before, _look()
        return {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "memory": psutil.virtual_memory().total,
            "before": before,
            "after": after,
            "busy": max(before["others_percent"], after["others_percent"]) > _QUIET,
        }


def _look() -> dict[str, Any]:
    # This process only waits meanwhile, so all that is seen is others' work.
    return {"others_percent": psutil.cpu_percent(_LOOK), "load": [round(load, 2) for load in os.getloadavg()]}


def bytecode(environment: Environment, *, own: bool) -> str:
    """Make sure that the libraries are compiled, as pip leaves them; else running by hand pays for it in every process.

    Args:
        environment: the one to look at.
        own: whether it is the engine's, so that something may be written to it.
    """
    code = "import importlib.util as u; print(u.find_spec('torch').origin)"
    found = subprocess.run([str(environment.python), "-c", code], capture_output=True, text=True, check=True)
    torch = Path(found.stdout.strip()).parent
    if compiled(torch):
        return "there"
    if not own:
        return "missing: every process of a run by hand or cold compiles what it imports"
    subprocess.run(
        [str(environment.python), "-m", compileall.__name__, "-q", "-j", "0", str(torch.parent)], check=False
    )
    return "compiled now"


def compiled(package: Path) -> bool:
    """Whether there is bytecode for most of a package's modules."""
    return len(list(package.glob("__pycache__/*.pyc"))) >= len(list(package.glob("*.py"))) / 2
