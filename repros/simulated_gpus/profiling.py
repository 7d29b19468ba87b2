"""Profilers: a CPU build of PyTorch lists no activities of CUDA, and does not record them without the CPU's."""

from __future__ import annotations

import functools
from typing import Any


def install(torch: Any) -> None:
    """Let profilers record the activities of CUDA: together with the CPU's, alone, or because none are named.

    With the CPU's, each operator has its time on the device (`csrc/runtime/profiling.cpp`). Alone, they are CUDA's
    kernels and copies, of which a simulated GPU has none: the record is empty.
    """
    profiler = torch.autograd.profiler
    cuda, fallback = profiler.ProfilerActivity.CUDA, profiler.ProfilerState.KINETO_GPU_FALLBACK
    supported, begin = torch.autograd._supported_activities, profiler.profile.__init__

    def supported_activities() -> Any:
        return {*supported(), cuda}

    @functools.wraps(begin)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        if cuda in getattr(self, "kineto_activities", ()) and self.use_cpu:  # one that is not enabled has none
            self.kineto_activities.discard(cuda)
            self.profiler_kind = fallback

    for module in (torch._C._autograd, torch.autograd, profiler, torch.profiler):
        module._supported_activities = supported_activities
    profiler.profile.__init__ = init
