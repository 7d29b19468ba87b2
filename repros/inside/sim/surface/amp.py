"""What mixed precision asks of a device."""

from __future__ import annotations

import torch

from .extension import ask


class autocast(torch.autocast):  # noqa: N801 # as torch.cuda.amp.autocast
    """`torch.autocast("sim")`; code for several devices asks each device's module for it."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("sim", dtype, enabled, cache_enabled)


def is_bf16_supported(including_emulation: bool = True) -> bool:  # noqa: ARG001 # as torch.cuda's
    """Whether tensors of bfloat16 can be computed with: yes."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast may be asked for: those of CUDA's."""
    return [torch.float16, torch.bfloat16, torch.float32]


# torch 2.1 to 2.3 ask the device's module for autocast's settings; later ones hold them themselves.


def use_cudas_default() -> None:
    """Makes float16 what autocast computes in by default, as on CUDA; those versions begin with bfloat16."""
    if hasattr(ask(), "set_autocast_dtype"):
        set_autocast_dtype(torch.float16)


def is_autocast_enabled() -> bool:
    """Whether autocast is on in this thread."""
    return bool(ask().is_autocast_enabled())


def set_autocast_enabled(enabled: bool) -> None:
    """Turns autocast on or off in this thread."""
    ask().set_autocast_enabled(enabled)


def get_autocast_dtype() -> torch.dtype:
    """The type that autocast computes in."""
    dtype: torch.dtype = ask().get_autocast_dtype()
    return dtype


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Sets the type that autocast computes in."""
    ask().set_autocast_dtype(dtype)
