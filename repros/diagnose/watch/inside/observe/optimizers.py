"""Of optimizers: `made`, `before_step`, `after_step`, `optimizer_state`, `loading`, `loaded` and `zeroing`.

`before_inspected_step` and `after_inspected_step`: the same for an optimizer's first 9 steps and the inspected ones.
Their listeners cost nothing in the many others; `after_inspected_backward` of :mod:`.backward` comes before them.

Steps are observed by torch's global step hooks (`register_optimizer_step_pre_hook`, torch 2.0). They see every subclass
of `torch.optim.Optimizer`, the wrappers of Lightning and accelerate excepted, which call the optimizer that they wrap.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.observe.compiling import unseen
from repros.diagnose.watch.inside.observe.patch import Args, around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

_FIRST = 9

steps: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
"""How many steps each live optimizer has begun."""


def parameters_of(optimizer: Optimizer) -> list[Parameter]:
    """Return the parameters that an optimizer holds."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


unstepped: weakref.WeakSet[Optimizer] = weakref.WeakSet()
"""The optimizers that were made and have not stepped."""


def coming(watch: Watch) -> int:
    """Return how many steps after an optimizer's last one the gradients of a backward are used.

    1, or 0 within a step: Lightning runs the backward in a closure.
    """
    return 0 if watch.is_later("before_step", "after_step") else 1


def is_step_due(watch: Watch) -> bool:
    """Return whether some optimizer's step that uses the gradients of the last backward is inspected."""
    following = coming(watch)
    # `data`: to guard the iteration over a weak dictionary takes longer than all else.
    return any(watch.is_due(number + following) for number in [*steps.data.values()])  # type: ignore[attr-defined]


def attach(watch: Watch) -> None:
    """Observe optimizers once torch.optim is imported."""
    when_imported("torch.optim.optimizer", lambda module: _patch_optimizers(watch, module))
    when_imported("torch.nn.modules.module", lambda module: _patch_modules(watch, module))


def _patch_optimizers(watch: Watch, module: ModuleType) -> None:
    @unseen
    def before_step(optimizer: Optimizer, *_: object) -> None:
        try:
            number = steps[optimizer] = steps.get(optimizer, 0) + 1
            if number == 1:
                unstepped.discard(optimizer)
        except Exception as error:  # an optimizer that cannot be referred to weakly
            watch.events.failed(error, "before_step")
            return
        watch.notify("before_step", optimizer, number)
        if number <= _FIRST or watch.is_due(number):
            watch.notify("before_inspected_step", optimizer, number)

    @unseen
    def after_step(optimizer: Optimizer, *_: object) -> None:
        number = steps.get(optimizer, 0)
        watch.notify("after_step", optimizer, number)
        if number <= _FIRST or watch.is_due(number):
            watch.notify("after_inspected_step", optimizer, number)

    module.register_optimizer_step_pre_hook(before_step)
    module.register_optimizer_step_post_hook(after_step)
    _patch_methods(watch, module)


def _patch_methods(watch: Watch, module: ModuleType) -> None:
    def made(args: Args, *_: object) -> None:
        unstepped.add(args[0])
        watch.notify("made", args[0])

    around(module.Optimizer, "__init__", after=made)
    when_imported("torch._dynamo", lambda dynamo: _hide(module.Optimizer, dynamo))
    around(
        module.Optimizer,
        "state_dict",
        returned=lambda args, _, state: watch.notify("optimizer_state", args[0], state),
    )
    around(
        module.Optimizer,
        "load_state_dict",
        before=lambda args, kwargs: watch.notify("loading", args[0], *args[1:2], *kwargs.values()),
        after=lambda args, kwargs, _: watch.notify("loaded", args[0], *args[1:2], *kwargs.values()),
    )
    around(
        module.Optimizer,
        "zero_grad",
        before=lambda args, _: watch.notify("zeroing", lambda: parameters_of(args[0])),
    )


def _hide(optimizer: Any, dynamo: ModuleType) -> None:
    """Keep the compiler out of the observed `__init__`: up to torch 2.3 it wants the groups of an optimizer by then."""
    optimizer.__init__ = dynamo.disable(optimizer.__init__)


def _patch_modules(watch: Watch, module: ModuleType) -> None:
    around(
        module.Module,
        "zero_grad",
        before=lambda args, _: watch.notify("zeroing", lambda: list(args[0].parameters())),
    )
