"""`python -m repros.simulated_gpus.tools.placement --device cuda --out FILE`; see observe.py."""

from __future__ import annotations

from repros.simulated_gpus.tools.placement.observe import main

main()
