"""Mixed precision in `torch.sim`."""

from __future__ import annotations

import torch

from .extension import get_extension


class autocast(torch.autocast):  # noqa: N801 # as torch.cuda.amp.autocast
    """`torch.autocast("sim")`; code for several devices looks it up in each device's module."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("sim", dtype, enabled, cache_enabled)


def is_bf16_supported(including_emulation: bool = True) -> bool:  # noqa: ARG001 # as torch.cuda's
    """Return True: bfloat16 is supported."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the types that autocast supports: CUDA's."""
    return [torch.float16, torch.bfloat16, torch.float32]


# torch 2.1 to 2.3 ask the device's module for autocast's settings; later versions keep the settings themselves.


def set_cuda_default_dtype() -> None:
    """Make float16 autocast's default type, as on CUDA; those versions start with bfloat16."""
    if hasattr(get_extension(), "set_autocast_dtype"):
        set_autocast_dtype(torch.float16)


def is_autocast_enabled() -> bool:
    """Return whether autocast is on in this thread."""
    return bool(get_extension().is_autocast_enabled())


def set_autocast_enabled(enabled: bool) -> None:
    """Turn autocast on or off in this thread."""
    get_extension().set_autocast_enabled(enabled)


def get_autocast_dtype() -> torch.dtype:
    """Return the type that autocast computes in."""
    dtype: torch.dtype = get_extension().get_autocast_dtype()
    return dtype


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Set the type that autocast computes in."""
    get_extension().set_autocast_dtype(dtype)
