"""`calling(module)`, `fed(module, inputs)` and `called(module, output)`: calls of modules, while a close look is taken.

`calling_own(module)`: of one whose `forward` is its own and not its class's, or which a hook of accelerate goes before.

The hooks are torch's global ones (`register_module_forward_pre_hook`). They are on until the first optimizer step of
the process and for each step that is due after it, off in between, and off for good once the program compiles or
exports, since what is compiled would hold them.

`fed_between(module, inputs)` and `called_between(module)`: calls that follow a step that was looked at, until the first
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
        self._close, self._following = self._make_close(), self._make_following()

    def on(self) -> None:
        """Look at all calls."""
        self._register(*self._close)

    def between(self) -> None:
        """Look at the calls that follow a step, until one with gradients on."""
        self._register(*self._following)

    def _make_close(self) -> tuple[Hook, Hook]:
        tell = self._watch.tell

        @unseen
        def calling(module: Module, inputs: tuple[object, ...]) -> None:
            tell("calling", module)
            own = module.__dict__
            if "forward" in own or "_hf_hook" in own:
                tell("calling_own", module)
            tell("fed", module, inputs)

        @unseen
        def called(module: Module, _: object, output: object) -> None:
            tell("called", module, output)

        return calling, called

    def _make_following(self) -> tuple[Hook, Hook]:
        tell = self._watch.tell

        @unseen
        def calling(module: Module, inputs: tuple[object, ...]) -> None:
            if sys.modules["torch"].is_grad_enabled():
                self.off()
            else:
                tell("fed_between", module, inputs)

        @unseen
        def called(module: Module, *_: object) -> None:
            tell("called_between", module)

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

        around(module.Module, "eval", before=lambda *_: watch.tell("evaluating"))
        watch.observe("begins", hooks.on)
        watch.observe("after_step", after_step)
        watch.observe("compiles", hooks.off)

    when_imported("torch.nn.modules.module", patch)
