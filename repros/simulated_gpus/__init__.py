"""The simulated accelerator: `cuda:0` is host memory that follows CUDA's rules, and programs run unmodified.

In a CPU build of torch, the device type, the dispatch key and the hooks of CUDA have nobody behind them, while every
composite, autograd and autocast kernel for CUDA is compiled in; a CUDA build that finds no driver can be taken over
likewise. Importing this package loads nothing. `startup.install()` arranges it, before torch is imported:

1. before `torch._C` is initialised, the extension registers kernels, allocator, device guard and hooks (`startup`);
2. before `torch.cuda` is imported, `torch._C` gets what a CUDA build has (`bindings`), since `torch.cuda` decides then;
3. once torch is imported, the few places are replaced that ask CUDA's runtime in compiled code (`finish`).

From then on it is PyTorch's own Python code for CUDA. `REPROS_SIM_DEVICES` sets the number of devices (default: 2).
"""

from __future__ import annotations

from .errors import SimUnavailableError

__all__ = ["SimUnavailableError"]

__version__ = "0.1.0"
"""Of the distribution `simulated-gpus`, which is built from this folder alone."""
