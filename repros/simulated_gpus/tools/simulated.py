"""Simulated GPUs for the Python processes that a tool starts."""

from __future__ import annotations

import os

from repros.inside import contract
from repros.simulated_gpus import variables


def simulated_environ() -> dict[str, str]:
    """Return the environment variables that put simulated GPUs in the place of `cuda`."""
    chosen = {contract.SIM: "cuda", variables.HIDE_GPUS: "1", variables.ANNOUNCED: "1"}
    return {**chosen, "PYTHONPATH": contract.python_path(os.environ.get("PYTHONPATH"))}
