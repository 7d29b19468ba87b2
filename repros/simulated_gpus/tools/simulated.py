"""Simulated GPUs for the Python processes that a tool starts."""

from __future__ import annotations

import os
from pathlib import Path

from repros.simulated_gpus import variables

SITE = Path(__file__).parents[2] / "inside" / "site"
"""The project's folder that sets up every Python process; nothing of it is imported here."""


def simulated_environ() -> dict[str, str]:
    """Return the environment variables that put simulated GPUs in the place of `cuda`."""
    places = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    chosen = {"REPROS_SIM": "cuda", variables.HIDE_GPUS: "1", variables.ANNOUNCED: "1"}
    return {**chosen, "PYTHONPATH": os.pathsep.join(places)}
