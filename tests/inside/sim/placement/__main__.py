"""`python -m tests.inside.sim.placement --device cuda --out FILE`: see observe.py."""

from __future__ import annotations

from tests.inside.sim.placement.observe import main

main()
