"""Everything between a repro script and its verdict; :mod:`repros.engine.pipeline` has the steps in their order."""

from __future__ import annotations

import os

# `launch/environ.py` and `inside/probe.py` ask by this variable whether the simulated accelerator takes CUDA's place.
# It always does by now. They are inputs of all evidence: they stop asking when all of it is measured again.
os.environ.setdefault("REPROS_SIM_PLACE", "cuda")
