"""`import repros.simulate.auto`, before torch is imported: this process and its children get simulated GPUs.

The variables of `repros.inside.sim` choose them: `REPROS_SIM_DEVICES` (2 if not set), `REPROS_SIM_MEMORY`,
`REPROS_SIM_LIKE`, `REPROS_SIM_HIDE_GPUS`.
"""

from __future__ import annotations

import os
import sys

from repros.inside.sim import arm
from repros.simulate import python_path

if "repros_inside.sim.arm" not in sys.modules:  # as the site folder names it: this process is armed already
    arm.install()
os.environ["REPROS_SIM"] = "cuda"
os.environ["PYTHONPATH"] = python_path(os.environ)
