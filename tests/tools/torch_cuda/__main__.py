"""`python -m tests.tools.torch_cuda` prints how each entry holds here, and which names have none; see check.py."""

from __future__ import annotations

from tests.tools.torch_cuda.check import main

main()
