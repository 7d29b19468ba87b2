"""`import repros.simulate.auto`, before torch is imported: this process and its children get simulated GPUs.

The variables of `repros.simulated_gpus` choose them: `REPROS_SIM_DEVICES` (2 if not set), `REPROS_SIM_MEMORY`,
`REPROS_SIM_LIKE`, `REPROS_SIM_HIDE_GPUS`.
"""

from __future__ import annotations

from repros.simulate import simulate_in_this_process

simulate_in_this_process()
