"""`calling(module)`, `fed(module, inputs)`, `called(module, output)`: calls of modules before an inspected step.

`calling_own(module)`: of one whose `forward` is its own and not its class's, or which has a hook of accelerate.

The hooks are torch's global ones (`register_module_forward_pre_hook`). They are on until the first optimizer step of
the process and for each step that is due after it, off in between, and off for good once the program compiles or
exports, since what is compiled would hold them.

`fed_between(module, inputs)` and `called_between(module)`: calls that follow an inspected step, until the first
with gradients. `evaluating()`: a module is put into eval mode.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.observe.compiling import unseen
from repros.diagnose.watch.inside.observe.patch import around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch.nn import Module
    from torch.utils.hooks import RemovableHandle


Hook = Callable[..., None]
"""A global hook of torch on calls of modules."""


class _Hooks:
    """The two global hooks, on or off."""

    def __init__(self, watch: Watch, module: ModuleType) -> None:
        self._watch = watch
        self._module = module
        self._handles: list[RemovableHandle] = []
        self._full, self._following = self._make_full(), self._make_following()

    def on(self) -> None:
        """Observe all calls."""
        self._register(*self._full)

    def between(self) -> None:
        """Observe the calls that follow a step, until one with gradients enabled."""
        self._register(*self._following)

    def _make_full(self) -> tuple[Hook, Hook]:
        notify = self._watch.notify

        @unseen
        def calling(module: Module, inputs: tuple[object, ...]) -> None:
            notify("calling", module)
            own = module.__dict__
            if "forward" in own or "_hf_hook" in own:
                notify("calling_own", module)
            notify("fed", module, inputs)

        @unseen
        def called(module: Module, _: object, output: object) -> None:
            notify("called", module, output)

        return calling, called

    def _make_following(self) -> tuple[Hook, Hook]:
        notify = self._watch.notify

        @unseen
        def calling(module: Module, inputs: tuple[object, ...]) -> None:
            if sys.modules["torch"].is_grad_enabled():
                self.off()
            else:
                notify("fed_between", module, inputs)

        @unseen
        def called(module: Module, *_: object) -> None:
            notify("called_between", module)

        return calling, called

    def _register(self, calling: Hook, called: Hook) -> None:
        self.off()
        if self._watch.compiles:
            return
        self._handles = [
            self._module.register_module_forward_pre_hook(calling),
            self._module.register_module_forward_hook(called),
        ]

    def off(self) -> None:
        if self._handles:
            for handle in self._handles:
                handle.remove()
            self._handles = []


def attach(watch: Watch) -> None:
    """Observe calls of modules once torch.nn is imported."""

    def patch(module: ModuleType) -> None:
        hooks = _Hooks(watch, module)
        hooks.on()

        def after_step(_: object, number: int) -> None:
            if watch.is_due(number + 1):
                hooks.on()
            elif watch.is_due(number):
                hooks.between()
            else:
                hooks.off()

        around(module.Module, "eval", before=lambda *_: watch.notify("evaluating"))
        watch.observe("begins", hooks.on)
        watch.observe("after_step", after_step)
        watch.observe("compiles", hooks.off)

    when_imported("torch.nn.modules.module", patch)
