"""What modules are given and return: in the forward passes that are trained on, and in those that are not.

A pass is trained on if it runs with gradients and, where a backward comes before the next step, what it returned is in
the graph of one. The others, those of an evaluation or of a teacher, are kept apart.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.compare.inside.names import Names
from repros.diagnose.compare.inside.summary import Summary, rows_of, summarise
from repros.diagnose.watch.inside.observe.compiling import unseen

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.utils.hooks import RemovableHandle

_MOST_TENSORS = 8
"""Tensors of one output that are summarised."""
_MOST_MODULES = 2000
"""Modules of one pass that are recorded."""
_MOST_OUTPUTS = 20_000
"""Outputs of passes that are not trained on, between two steps, that are recorded."""
_MOST_BATCHES = 1000
"""Batches of loaders that are recorded where no module takes them."""
_MARK = "repros pass"
LOADER = "DataLoader"
_numbers = itertools.count()


class Pass:
    """The forward passes between two backward passes, or one that is not trained on."""

    def __init__(self) -> None:
        """Begin without any."""
        self.number = next(_numbers)
        self.is_marked = self.is_reached = False
        """Whether its outputs carry it in their graph, and whether a backward has met it there."""
        self.losses: list[Summary] = []
        """What its backward began with."""
        self.inputs: dict[str, object] = {}
        """The rows that modules were given as data, with no graph behind them, by name, for the first call of each."""
        self.outputs: dict[str, list[Summary]] = {}
        """The summaries of what they returned, likewise, in the order in which they returned."""
        self.roots: set[str] = set()
        """The modules that no other module has called."""

    @property
    def is_used(self) -> bool:
        """Whether anything is in it."""
        return bool(self.losses or self.roots)

    def as_json(self) -> dict[str, object]:
        """Return its fields."""
        return {"losses": self.losses, "inputs": self.inputs, "outputs": self.outputs, "roots": sorted(self.roots)}


class Calls:
    """Torch's two global hooks on calls of modules, while the program compiles nothing."""

    def __init__(
        self, names: Names, failed: Callable[[BaseException, str], None], evaluating: Callable[[Module], None]
    ) -> None:
        """Begin without hooks.

        Args:
            names: what gives the modules their names.
            failed: called with an error of this observation, which must not reach the program.
            evaluating: called with an outermost module that is called without gradients, the first time since a step.
        """
        self._failed = failed
        self._evaluating = evaluating
        self.passes: list[Pass] = [Pass()]
        """Those of the coming step; the last is not over."""
        self._untrained: list[Pass] = []
        self._evaluated: set[str] = set()
        self._outputs = 0
        """How many of passes without gradients are recorded since the last step."""
        self.is_cut = False
        """Whether there were more since the last step."""
        self.is_backward = False
        """Whether a backward runs: what it computes again is no call of the program's."""
        self._has_called = False
        self._names = names
        self._stack: list[tuple[int, str]] = []
        self._current: Pass | None = None
        self._handles: list[RemovableHandle] = []

    def on(self, module: ModuleType) -> None:
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
        def guarded(*args: object) -> None:
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

    def take(self) -> list[dict[str, object]]:
        """Return the passes of a step, and forget them; those that were not trained on stay for `take_untrained`."""
        passes, self.passes = [each for each in self.passes if each.is_used], [Pass()]
        has_backward = any(each.losses for each in passes)
        lost = [each for each in passes if has_backward and each.is_marked and not (each.is_reached or each.losses)]
        self._untrained += lost
        return [each.as_json() for each in passes if each not in lost]

    def take_untrained(self, *, is_end: bool) -> list[dict[str, object]]:
        """Return the passes that were not trained on since the last time, and forget them.

        Args:
            is_end: whether nothing comes after them, so that those with gradients are not trained on, either.
        """
        passes, self._untrained = self._untrained, []
        if is_end:
            passes += [each for each in self.passes if each.is_used and not (each.is_reached or each.losses)]
            self.passes = [Pass()]
        self._stack.clear()
        self._evaluated.clear()
        self._outputs, self.is_cut = 0, False
        return [each.as_json() for each in passes]

    def reach(self, tensors: Iterable[Tensor]) -> None:
        """Note the passes in whose graph a backward begins."""
        # A backward may begin at an edge of the graph, too, which has a node.
        waiting = [getattr(each, "grad_fn", None) or getattr(each, "node", None) for each in tensors]
        met, seen = set(), set()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if _MARK in node.metadata:
                met.add(node.metadata[_MARK])
            waiting += [function for function, _ in node.next_functions]
        for each in self.passes:
            each.is_reached |= each.number in met

    def hand(self, batch: object) -> None:
        """Take a batch of a loader: it counts as the input of a pass as long as the program calls no module."""
        tensors = [] if self._has_called or len(self.passes) > _MOST_BATCHES else list(_tensors(batch))
        rows = _attempt(lambda: rows_of(tensors)) if tensors else None
        if rows is not None:
            if LOADER in self.passes[-1].inputs:
                self.passes.append(Pass())
            self.passes[-1].inputs[LOADER] = rows
            self.passes[-1].roots.add(LOADER)

    def call(self, name: str, given: object, returned: object) -> None:
        """Record a call of something that is no module, in a pass that is not trained on."""
        if self._stack or not self._handles:
            return
        self._begin(name, is_trained=False)
        if self._current is not None and name not in self._current.outputs:
            if given is not None:
                self._record_inputs(name, given)
            self._record_outputs(name, returned)

    def _begin(self, name: str, *, is_trained: bool) -> None:
        """Find the pass of an outermost call; None where there are too many."""
        if not self._has_called:
            self._has_called = True
            for each in self.passes:
                each.inputs.pop(LOADER, None)
                each.roots.discard(LOADER)
        passes = self.passes if is_trained else self._untrained
        if not is_trained and self._outputs >= _MOST_OUTPUTS:
            self.is_cut, self._current = True, None
            return
        if not passes or (name in passes[-1].roots and name in passes[-1].outputs):
            passes.append(Pass())
        self._current = passes[-1]
        self._current.roots.add(name)

    def _before(self, module: Module, inputs: object) -> None:
        import torch

        if self.is_backward:
            return
        name = self._names.of_module(module)
        if not self._stack:
            is_trained = torch.is_grad_enabled()
            self._begin(name, is_trained=is_trained)
            if not is_trained and self._current is not None and name not in self._evaluated:
                self._evaluated.add(name)
                self._evaluating(module)
        self._stack.append((id(module), name))
        if self._current is not None and name not in self._current.inputs:
            self._record_inputs(name, inputs)

    def _record_inputs(self, name: str, given: object) -> None:
        tensors = [each for each in _tensors(given) if not each.requires_grad]
        rows = _attempt(lambda: rows_of(tensors)) if tensors else None
        if self._current is not None and rows is not None and len(self._current.inputs) < _MOST_MODULES:
            self._current.inputs[name] = rows

    def _record_outputs(self, name: str, output: object) -> None:
        if self._current is not None:
            found = list(_tensors(output))[:_MOST_TENSORS]
            self._current.outputs[name] = [summarise(tensor) for tensor in found]
            self._outputs += self._current in self._untrained[-1:]

    def _after_with_words(self, module: Module, _: object, words: Mapping[str, object], output: object) -> None:
        self._leave(module, words, output)

    def _after(self, module: Module, _: object, output: object) -> None:
        self._leave(module, {}, output)

    def _leave(self, module: Module, words: Mapping[str, object], output: object) -> None:
        if self.is_backward or all(id(module) != each for each, _ in self._stack):
            return
        name = ""
        while self._stack:
            place, name = self._stack.pop()
            if place == id(module):
                break
        current = self._current
        if current is None or name in current.outputs or len(current.outputs) >= _MOST_MODULES:
            return
        if name not in current.inputs:
            self._record_inputs(name, words)
        self._record_outputs(name, output)
        if not self._stack:
            _mark(current, output)


def _mark(current: Pass, output: object) -> None:
    """Write into the graph behind an output which pass it is of."""
    for tensor in _tensors(output):
        node = tensor.grad_fn
        if node is not None:
            node.metadata[_MARK] = current.number
            current.is_marked = True


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception:  # tensors without values: meta, functorch
        return None


def _tensors(value: object, depth: int = 0) -> Iterator[Tensor]:
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
