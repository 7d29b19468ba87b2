"""The functions of `torch.cuda` that call NVML, the management library of NVIDIA's driver. There is none here."""

from __future__ import annotations

import functools
from typing import Any

from . import extension

_MEASURED = ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")


def install(torch: Any) -> None:
    """Refuse NVML's measurements; the memory in use is the simulated device's."""
    for name in _MEASURED:
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, _refusing(getattr(torch.cuda, name)))
    if hasattr(torch.cuda, "device_memory_used"):
        torch.cuda.device_memory_used = _device_memory_used


def _refusing(function: Any) -> Any:
    @functools.wraps(function)
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(
            f"torch.cuda.{function.__name__} asks NVML, and simulated GPUs have none; leave out what it measures:"
            " utilization, temperature, power, clocks"
        )

    return refuse


def _device_memory_used(device: Any = None) -> int:
    """Return the bytes that programs have taken of a device, used or cached."""
    import torch

    index = torch.cuda._utils._get_device_index(device, optional=True)
    return int(extension.get().memory(index)["reserved"][0]["current"])
