"""`python -m tests.tools.placement --device cuda --out FILE`; see observe.py."""

from __future__ import annotations

from tests.tools.placement.observe import main

main()
