"""Autograd's threads: for a GPU, a backward pass runs in one of them."""

from __future__ import annotations

import atexit
import functools
import os
from typing import Any

from . import extension


def install(torch: Any) -> None:
    """Run backward in its caller's thread where that has no visible effect; end its threads before the process."""
    extension.get().replace_run_backward(torch._C._ImperativeEngine)
    _watch_saved_tensors(torch._C._autograd)
    atexit.register(_let_autograd_end)


def _watch_saved_tensors(c: Any) -> None:
    """Note hooks on saved tensors, such as a checkpoint's: Python code that runs inside nodes without a sign of it."""
    push, register = c._push_saved_tensors_default_hooks, c.SavedTensor.register_hooks

    @functools.wraps(push)
    def push_hooks(*hooks: Any) -> Any:
        extension.get().expect_saved_tensor_hooks()
        return push(*hooks)

    @functools.wraps(register)
    def register_hooks(self: Any, *hooks: Any) -> Any:
        extension.get().expect_saved_tensor_hooks()
        return register(self, *hooks)

    c._push_saved_tensors_default_hooks, c.SavedTensor.register_hooks = push_hooks, register_hooks


_PROCESS = os.getpid()


def _let_autograd_end() -> None:
    # A device's autograd thread may still free what `backward` held when that has returned. If the interpreter ends
    # meanwhile, the process aborts ("terminate called without an active exception"): seen on 2.13, one run in two of a
    # script that ends with `backward`. A forked process has no such threads.
    if os.getpid() == _PROCESS and extension.get().has_allocated():
        extension.get().await_autograd()
