"""Which algorithms attention can take on a simulated GPU, as `torch.backends.cuda` asks."""

from __future__ import annotations

from typing import Any

from . import extension


def functions() -> dict[str, Any]:
    """Return the functions of `torch._C`; before 2.4, in which these questions need PyTorch's own CUDA code, none."""
    extended = extension.get()
    if not hasattr(extended, "can_use_flash_attention"):
        return {}
    return {
        "_can_use_flash_attention": extended.can_use_flash_attention,
        "_can_use_mem_efficient_attention": extended.can_use_efficient_attention,
        "_can_use_cudnn_attention": lambda _parameters, _debug: False,
        "_is_flash_attention_available": lambda: True,
    }
