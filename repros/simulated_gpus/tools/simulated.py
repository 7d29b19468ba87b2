"""Simulated GPUs for the Python processes that a tool starts."""

from __future__ import annotations

import os
from pathlib import Path

SITE = Path(__file__).parents[2] / "inside" / "site"


def simulated_environ() -> dict[str, str]:
    """Return the environment variables that put simulated GPUs in the place of `cuda`."""
    places = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {"REPROS_SIM": "cuda", "REPROS_SIM_HIDE_GPUS": "1", "REPROS_SIM_ANNOUNCED": "1"}
    return {**variables, "PYTHONPATH": os.pathsep.join(places)}
