"""What modules are given and return, in the forward passes that are trained on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from repros.watch.inside.observe.compiling import unseen
from repros.watch.inside.record.names import Names
from repros.watch.inside.record.summary import rows_of, summarise

_MOST_TENSORS = 8
"""Tensors of one output that are summarised."""
_MOST_MODULES = 2000
"""Modules of one pass that are recorded."""


class Pass:
    """The forward passes between two backward passes."""

    def __init__(self) -> None:
        """Begin without any."""
        self.losses: list[Any] = []
        """What its backward began with."""
        self.inputs: dict[str, Any] = {}
        """The rows that modules were given as data, with no graph behind them, by name, for the first call of each."""
        self.outputs: dict[str, Any] = {}
        """The summaries of what they returned, likewise, in the order in which they returned."""
        self.roots: set[str] = set()
        """The modules that no other module has called."""

    def as_json(self) -> dict[str, Any]:
        """Return its fields."""
        return {"losses": self.losses, "inputs": self.inputs, "outputs": self.outputs, "roots": sorted(self.roots)}


class Calls:
    """Torch's two global hooks on calls of modules, while the program compiles nothing."""

    def __init__(self, names: Names, failed: Callable[[BaseException, str], None]) -> None:
        """Begin without hooks.

        Args:
            names: what gives the modules their names.
            failed: called with an error of this observation, which must not reach the program.
        """
        self._failed = failed
        self.passes: list[Pass] = [Pass()]
        """Those of the coming step; the last is not over."""
        self.is_backward = False
        """Whether a backward runs: what it computes again is no call of the program's."""
        self._names = names
        self._stack: list[tuple[int, str]] = []
        self._is_trained = False
        self._handles: list[Any] = []

    def on(self, module: Any) -> None:
        """Observe all modules from now on.

        Args:
            module: `torch.nn.modules.module`.
        """
        register = module.register_module_forward_hook
        has_words = "with_kwargs" in inspect.signature(register).parameters  # not in torch 2.0
        after = self._after_with_words if has_words else self._after
        self._handles = [
            module.register_module_forward_pre_hook(unseen(self._guard(self._before))),
            register(unseen(self._guard(after)), **({"with_kwargs": True} if has_words else {})),
        ]

    def _guard(self, hook: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(hook)
        def guarded(*args: Any) -> None:
            try:
                hook(*args)
            except Exception as error:
                self.off()
                self._failed(error, "a call of a module")

        return guarded

    def off(self) -> None:
        """Leave all modules alone."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_pass(self) -> None:
        """Begin a new pass: a backward is over."""
        self._stack.clear()
        self.passes.append(Pass())

    def take(self) -> list[dict[str, Any]]:
        """Return the passes so far, and forget them."""
        passes, self.passes = self.passes, [Pass()]
        return [each.as_json() for each in passes if each.losses or each.roots]

    def _before(self, module: Any, inputs: Any) -> None:
        import torch

        if self.is_backward:
            return
        name = self._names.of_module(module)
        if not self._stack:
            self._is_trained = torch.is_grad_enabled()
            if self._is_trained and name in self.passes[-1].roots and name in self.passes[-1].outputs:
                self.passes.append(Pass())
            if self._is_trained:
                self.passes[-1].roots.add(name)
        self._stack.append((id(module), name))
        if self._is_trained and name not in self.passes[-1].inputs:
            self._record_inputs(name, inputs)

    def _record_inputs(self, name: str, given: Any) -> None:
        tensors = [each for each in _tensors(given) if not each.requires_grad]
        rows = _attempt(lambda: rows_of(tensors)) if tensors else None
        if rows is not None and len(self.passes[-1].inputs) < _MOST_MODULES:
            self.passes[-1].inputs[name] = rows

    def _after_with_words(self, module: Any, _: Any, words: Mapping[str, Any], output: Any) -> None:
        self._leave(module, words, output)

    def _after(self, module: Any, _: Any, output: Any) -> None:
        self._leave(module, {}, output)

    def _leave(self, module: Any, words: Mapping[str, Any], output: Any) -> None:
        if self.is_backward or all(id(module) != each for each, _ in self._stack):
            return
        name = ""
        while self._stack:
            place, name = self._stack.pop()
            if place == id(module):
                break
        current = self.passes[-1]
        if not self._is_trained or name in current.outputs or len(current.outputs) >= _MOST_MODULES:
            return
        if name not in current.inputs:
            self._record_inputs(name, words)
        found = list(_tensors(output))[:_MOST_TENSORS]
        current.outputs[name] = [summarise(tensor) for tensor in found]


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception:  # tensors without values: meta, functorch
        return None


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the tensors of arguments or of an output, in their order."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping) and depth < 3:  # noqa: PLR2004 - deeper than any batch
        for each in value.values():
            yield from _tensors(each, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 3:  # noqa: PLR2004 - the same
        for each in value:
            yield from _tensors(each, depth + 1)
