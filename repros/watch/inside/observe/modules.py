"""`calling(module)`, `fed(module, inputs)` and `called(module, output)`: calls of modules, while a close look is taken.

The hooks are torch's global ones (`register_module_forward_pre_hook`). They are on until the first optimizer step of
the process and for each step that is due after it, off in between, and off for good once the program compiles or
exports, since what is compiled would hold them.
"""

from __future__ import annotations

from typing import Any

from repros.inside.import_hooks import when_imported
from repros.watch.inside.observe.compiling import unseen
from repros.watch.inside.watch import Watch


class _Hooks:
    """The two global hooks, on or off."""

    def __init__(self, watch: Watch, module: Any) -> None:
        self._watch = watch
        self._module = module
        self._handles: list[Any] = []

    def on(self) -> None:
        if self._handles or self._watch.compiles:
            return
        tell = self._watch.tell

        @unseen
        def calling(module: Any, inputs: Any) -> None:
            tell("calling", module)
            tell("fed", module, inputs)

        @unseen
        def called(module: Any, _: Any, output: Any) -> None:
            tell("called", module, output)

        self._handles = [
            self._module.register_module_forward_pre_hook(calling),
            self._module.register_module_forward_hook(called),
        ]

    def off(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


def attach(watch: Watch) -> None:
    """Observe calls of modules once torch.nn is imported."""

    def patch(module: Any) -> None:
        hooks = _Hooks(watch, module)
        hooks.on()

        def after_step(_: Any, number: int) -> None:
            if watch.is_due(number + 1):
                hooks.on()
            else:
                hooks.off()

        watch.observe("begins", hooks.on)
        watch.observe("after_step", after_step)
        watch.observe("compiles", hooks.off)

    when_imported("torch.nn.modules.module", patch)
