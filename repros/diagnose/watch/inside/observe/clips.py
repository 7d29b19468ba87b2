"""`clipping(parameters, most)`: gradients are about to be clipped to a norm or a value.

`clipped(most, norm)`: they were clipped to a norm, and had this one before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch import Tensor


def attach(watch: Watch) -> None:
    """Observe clipping once torch's functions for it are imported."""

    def clipping(args: Args, kwargs: Kwargs) -> None:
        parameters = kwargs.get("parameters", args[0] if args else None)
        most = kwargs.get("max_norm", kwargs.get("clip_value", args[1] if len(args) > 1 else None))
        watch.notify("clipping", parameters, most)

    def clipped(args: Args, kwargs: Kwargs, norm: Tensor) -> None:
        watch.notify("clipped", kwargs.get("max_norm", args[1] if len(args) > 1 else None), norm)

    def patch(module: ModuleType) -> None:
        exporting = sys.modules.get("torch.nn.utils")
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            around(module, name, before=clipping, returned=clipped if name == "clip_grad_norm_" else None)
            if hasattr(exporting, name):  # a watch that begins in a program's code finds it imported
                setattr(exporting, name, getattr(module, name))

    when_imported("torch.nn.utils.clip_grad", patch)
