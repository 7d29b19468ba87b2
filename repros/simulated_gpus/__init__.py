"""The simulated accelerator: `cuda:0` is host memory that follows CUDA's rules, and programs run unmodified.

A CPU build of torch has no backend for CUDA's device type, dispatch key and hooks, but has every composite, autograd
and autocast kernel for CUDA. A CUDA build that finds no driver is in the same state. The simulated accelerator is that
backend. Importing this package loads nothing. `startup.install()` installs it, before torch is imported:

1. before `torch._C` is initialised, the extension registers kernels, allocator, device guard and hooks (`startup`);
2. before `torch.cuda` is imported, `torch._C` gets what a CUDA build has (`bindings`), since `torch.cuda` decides then;
3. once torch is imported, the few functions that call CUDA's runtime in compiled code are replaced (`finish`).

From then on PyTorch's own Python code for CUDA runs. `REPROS_SIM_DEVICES` sets the number of devices (default: 2).
"""

from __future__ import annotations

from .errors import SimUnavailableError

__all__ = ["SimUnavailableError"]

__version__ = "0.1.0"
"""Version of the distribution `simulated-gpus`, which is built from this folder alone."""
