"""The inputs and outputs of modules, in the forward passes that are trained on and in the others.

A pass is trained on if it runs with gradients enabled and, where a backward comes before the next step, its output is
in the graph of one. The others, of an evaluation or a teacher, are recorded separately.
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
"""Batches of loaders that are recorded while the program calls no module."""
_MARK = "repros pass"
LOADER = "DataLoader"
_numbers = itertools.count()


class Pass:
    """The forward passes between two backward passes, or one that is not trained on."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.is_marked = self.is_reached = False
        """Whether the graph of its outputs is marked, and whether a backward has reached the mark."""
        self.losses: list[Summary] = []
        """The summaries of the tensors at which its backward began."""
        self.inputs: dict[str, object] = {}
        """By module's name, for its first call: the rows of its inputs without a graph, which are data."""
        self.outputs: dict[str, list[Summary]] = {}
        """By module's name, for its first call: the summaries of its outputs, in the order of returns."""
        self.roots: set[str] = set()
        """The names of the outermost modules."""

    @property
    def is_used(self) -> bool:
        """Whether the pass has a call or a backward."""
        return bool(self.losses or self.roots)

    def as_json(self) -> dict[str, object]:
        """Return the fields of the event."""
        return {"losses": self.losses, "inputs": self.inputs, "outputs": self.outputs, "roots": sorted(self.roots)}


class Calls:
    """Torch's two global hooks on calls of modules, on until the program compiles."""

    def __init__(
        self, names: Names, failed: Callable[[BaseException, str], None], evaluating: Callable[[Module], None]
    ) -> None:
        """Create it without hooks.

        Args:
            names: returns the names of modules.
            failed: called with an error of this observation, which must not reach the program.
            evaluating: called with an outermost module at its first call without gradients since a step.
        """
        self._failed = failed
        self._evaluating = evaluating
        self.passes: list[Pass] = [Pass()]
        """The passes of the coming step; the last one is still open."""
        self._untrained: list[Pass] = []
        self._evaluated: set[int] = set()
        """The modules, by `id`, of the evaluation; several may have the same name."""
        self._outputs = 0
        """The number of outputs without gradients that were recorded since the last step."""
        self.is_cut = False
        """Whether further outputs were dropped since the last step."""
        self.is_backward = False
        """Whether a backward runs: its recomputation is no call of the program."""
        self._has_called = False
        self._names = names
        self._stack: list[tuple[int, str]] = []
        self._current: Pass | None = None
        self._handles: list[RemovableHandle] = []

    def on(self, module: ModuleType) -> None:
        """Observe all modules.

        Args:
            module: `torch.nn.modules.module`.
        """
        register = module.register_module_forward_hook
        has_keywords = "with_kwargs" in inspect.signature(register).parameters  # not in torch 2.0
        after = self._after_with_keywords if has_keywords else self._after
        self._handles = [
            module.register_module_forward_pre_hook(unseen(self._guard(self._before))),
            register(unseen(self._guard(after)), **({"with_kwargs": True} if has_keywords else {})),
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
        """Observe no module."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def end_pass(self) -> None:
        """Begin a new pass after a backward."""
        self._stack.clear()
        self.passes.append(Pass())

    def take(self) -> list[dict[str, object]]:
        """Return the passes of a step and forget them; those that were not trained on stay for `take_untrained`."""
        passes, self.passes = [one for one in self.passes if one.is_used], [Pass()]
        has_backward = any(one.losses for one in passes)
        untrained = [one for one in passes if has_backward and one.is_marked and not (one.is_reached or one.losses)]
        self._untrained += untrained
        return [one.as_json() for one in passes if one not in untrained]

    def take_untrained(self, *, is_end: bool) -> list[dict[str, object]]:
        """Return the passes that were not trained on since the last call, and forget them.

        Args:
            is_end: whether no step follows, so that those with gradients are not trained on, either.
        """
        passes, self._untrained = self._untrained, []
        if is_end:
            passes += [one for one in self.passes if one.is_used and not (one.is_reached or one.losses)]
            self.passes = [Pass()]
        self._stack.clear()
        self._evaluated.clear()
        self._outputs, self.is_cut = 0, False
        return [one.as_json() for one in passes]

    def reach(self, tensors: Iterable[Tensor]) -> None:
        """Mark the passes whose graph a backward reaches."""
        # A backward may begin at an edge of the graph, too, which has a node.
        waiting = [getattr(tensor, "grad_fn", None) or getattr(tensor, "node", None) for tensor in tensors]
        reached, visited = set(), set()
        while waiting:
            node = waiting.pop()
            if node is None or node in visited:
                continue
            visited.add(node)
            if _MARK in node.metadata:
                reached.add(node.metadata[_MARK])
            waiting += [function for function, _ in node.next_functions]
        for one in self.passes:
            one.is_reached |= one.number in reached

    def hand(self, batch: object) -> None:
        """Record a batch of a loader as the input of a pass, until the program calls a module."""
        tensors = [] if self._has_called or len(self.passes) > _MOST_BATCHES else list(_tensors(batch))
        rows = _attempt(lambda: rows_of(tensors)) if tensors else None
        if rows is not None:
            if LOADER in self.passes[-1].inputs:
                self.passes.append(Pass())
            self.passes[-1].inputs[LOADER] = rows
            self.passes[-1].roots.add(LOADER)

    def call(self, name: str, given: object, returned: object) -> None:
        """Record a call of anything but a module, in a pass that is not trained on."""
        if self._stack or not self._handles:
            return
        self._begin(name, is_trained=False)
        if self._current is not None and name not in self._current.outputs:
            if given is not None:
                self._record_inputs(name, given)
            self._record_outputs(name, returned)

    def _begin(self, name: str, *, is_trained: bool) -> None:
        """Set the pass of an outermost call; None after too many outputs."""
        if not self._has_called:
            self._has_called = True
            for one in self.passes:
                one.inputs.pop(LOADER, None)
                one.roots.discard(LOADER)
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
            if not is_trained and self._current is not None and id(module) not in self._evaluated:
                self._evaluated.add(id(module))
                self._evaluating(module)
        self._stack.append((id(module), name))
        if self._current is not None and name not in self._current.inputs:
            self._record_inputs(name, inputs)

    def _record_inputs(self, name: str, given: object) -> None:
        tensors = [tensor for tensor in _tensors(given) if not tensor.requires_grad]
        rows = _attempt(lambda: rows_of(tensors)) if tensors else None
        if self._current is not None and rows is not None and len(self._current.inputs) < _MOST_MODULES:
            self._current.inputs[name] = rows

    def _record_outputs(self, name: str, output: object) -> None:
        if self._current is not None:
            tensors = list(_tensors(output))[:_MOST_TENSORS]
            self._current.outputs[name] = [summarise(tensor) for tensor in tensors]
            self._outputs += self._current in self._untrained[-1:]

    def _after_with_keywords(self, module: Module, _: object, keywords: Mapping[str, object], output: object) -> None:
        self._leave(module, keywords, output)

    def _after(self, module: Module, _: object, output: object) -> None:
        self._leave(module, {}, output)

    def _leave(self, module: Module, keywords: Mapping[str, object], output: object) -> None:
        if self.is_backward or all(id(module) != key for key, _ in self._stack):
            return
        name = ""
        while self._stack:
            key, name = self._stack.pop()
            if key == id(module):
                break
        current = self._current
        if current is None or name in current.outputs or len(current.outputs) >= _MOST_MODULES:
            return
        if name not in current.inputs:
            self._record_inputs(name, keywords)
        self._record_outputs(name, output)
        if not self._stack:
            _mark(current, output)


def _mark(current: Pass, output: object) -> None:
    """Mark the graph of an output with its pass."""
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
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 3:  # noqa: PLR2004 - the same
        for item in value:
            yield from _tensors(item, depth + 1)
