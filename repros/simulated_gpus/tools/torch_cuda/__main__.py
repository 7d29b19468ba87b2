"""`python -m repros.simulated_gpus.tools.torch_cuda`: how each entry holds here, and which names have none."""

from __future__ import annotations

from repros.simulated_gpus.tools.torch_cuda.check import main

main()
