"""`before_backward()`, `differentiating(tensors)` and `after_backward()`: around each outermost backward pass.

`after_inspected_backward()`: after one whose gradients are for an inspected step, or while no step was made.
`inner_backward()`: one inside it. `hooks_saved()`: from now on a hook decides what the graph keeps, and runs when that
is read.

`torch.autograd.backward` is patched, which `Tensor.backward` calls. A backward inside another (a reentrant
checkpoint's) is part of it.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from repros.diagnose.watch.inside.observe import compiling
from repros.diagnose.watch.inside.observe.compiling import uncounted
from repros.diagnose.watch.inside.observe.optimizers import is_step_due, unstepped
from repros.diagnose.watch.inside.observe.patch import around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported


def attach(watch: Watch) -> None:
    """Observe backward passes once torch.autograd is imported."""
    depth = 0

    @compiling.unseen
    def begins(tensors: object) -> None:
        nonlocal depth
        depth += 1
        watch.notify("before_backward" if depth == 1 else "inner_backward")
        if depth == 1:
            watch.notify("differentiating", tensors)

    @compiling.unseen
    def ended(*, returned: bool) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0 and returned:
            watch.notify("after_backward")
            if not watch.count("before_step") or unstepped or is_step_due(watch):
                watch.notify("after_inspected_backward")

    def patch(module: Any) -> None:
        original = module.backward

        @uncounted
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            begins(args[0] if args else kwargs.get("tensors"))
            returned = False
            try:
                result = original(*args, **kwargs)
                returned = True
            finally:
                ended(returned=returned)
            return result

        module.backward = backward

    when_imported("torch.autograd", patch)
    when_imported("torch.autograd.graph", lambda module: _patch_hooks(watch, module))


def _patch_hooks(watch: Watch, module: ModuleType) -> None:
    around(module.saved_tensors_hooks, "__enter__", before=lambda *_: watch.notify("hooks_saved"))
