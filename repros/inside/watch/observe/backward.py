"""`before_backward()` and `after_backward()`: around each outermost backward pass of the process.

`torch.autograd.backward` is patched, which `Tensor.backward` calls. A backward inside another (a reentrant
checkpoint's) is part of it.
"""

from __future__ import annotations

import functools
from typing import Any

from ...sim.import_hooks import when_imported
from ..watch import Watch


def attach(watch: Watch) -> None:
    """Observe backward passes once torch.autograd is imported."""
    depth = 0

    def patch(module: Any) -> None:
        original = module.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if depth == 0:
                watch.tell("before_backward")
            depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                watch.tell("after_backward")
            return result

        module.backward = backward

    when_imported("torch.autograd", patch)
