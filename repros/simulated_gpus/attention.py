"""The attention backends that a simulated GPU supports, as `torch.backends.cuda` queries them."""

from __future__ import annotations

from typing import Any

from . import extension


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C`; none before 2.4, where the queries need PyTorch's own CUDA code."""
    extended = extension.get()
    if not hasattr(extended, "can_use_flash_attention"):
        return {}
    return {
        "_can_use_flash_attention": extended.can_use_flash_attention,
        "_can_use_mem_efficient_attention": extended.can_use_efficient_attention,
        "_can_use_cudnn_attention": lambda _parameters, _debug: False,
        "_is_flash_attention_available": lambda: True,
    }
