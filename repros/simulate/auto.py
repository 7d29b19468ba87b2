"""`import repros.simulate.auto` before torch adds simulated GPUs to this process and its children.

Variables of `repros.simulated_gpus`: `REPROS_SIM_DEVICES` (default 2), `REPROS_SIM_MEMORY`,
`REPROS_SIM_LIKE`, `REPROS_SIM_HIDE_GPUS`.
"""

from __future__ import annotations

from repros.simulate import simulate_in_this_process

simulate_in_this_process()
