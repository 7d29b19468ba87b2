"""The last state of every model and optimizer: as it is deleted, or as the process ends.

The locals of a function are deleted when a program ends, so `torch.nn.Module` and `torch.optim.Optimizer` get a
finalizer, which Python calls with an object that is about to be deleted. The modules of a model are deleted with it,
before or after: nothing is recorded of a module that is part of one that is deleted at the same moment.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from repros.diagnose.compare.inside.names import find_roots, paths
from repros.diagnose.compare.inside.summary import Summary, summarise
from repros.diagnose.watch.inside.observe.compiling import unseen
from repros.diagnose.watch.inside.observe.patch import around
from repros.diagnose.watch.inside.watch import Watch
from repros.simulated_gpus.import_hooks import when_imported

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

_MOST = 64
"""The most models, and optimizers, whose last state is recorded."""


class _Model(NamedTuple):
    """The last state of a model."""

    born: int
    place: int
    """Its `id`."""
    modules: frozenset[int]
    """The `id` of each module in it, its own included."""
    parameters: dict[str, Summary]
    buffers: dict[str, Summary]
    trained: list[str]


class Ends:
    """The last states of this process's models and optimizers."""

    def __init__(self, watch: Watch, describe: Callable[[Optimizer], dict[str, object]]) -> None:
        """Create it before any model or optimizer is made.

        Args:
            watch: the watch of the process.
            describe: returns the options and the state of an optimizer.
        """
        self._watch = watch
        self._describe = describe
        self._counter = itertools.count()
        self._born: dict[int, int] = {}
        """The order in which modules and optimizers were made, by `id`."""
        self._models: list[_Model] = []
        self._moment: list[_Model] = []
        """Those of `_models` that were deleted since the program has last made or called a module."""
        self._alive: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        """The live optimizers."""
        self._optimizers: list[tuple[int, dict[str, object]]] = []
        self._is_over = False

    def listen(self) -> None:
        """Observe the models and optimizers that are made and deleted."""
        when_imported("torch.nn.modules.module", lambda module: self._patch_modules(module.Module))
        when_imported("torch.optim.optimizer", lambda module: self._patch(module.Optimizer, self._take_optimizer))
        self._watch.listen("made", self._made)

    def _made(self, optimizer: Optimizer) -> None:
        self._alive.add(optimizer)
        self._make(optimizer)

    def _patch_modules(self, kind: Any) -> None:
        self._patch(kind, self._take_model)
        around(kind, "__init__", before=lambda args, _: self._make(args[0]))

    def _patch(self, kind: Any, take: Callable[[Any], None]) -> None:
        finalizer = getattr(kind, "__del__", None)

        @unseen
        def gone(deleted: Module | Optimizer) -> None:
            try:
                take(deleted)
            except Exception as error:
                self._watch.events.failed(error, "the end of a model or an optimizer")

        def __del__(deleted: Module | Optimizer) -> None:  # noqa: N807 - it becomes this method
            if not self._is_over:  # first: at interpreter exit it is unknown whether a graph is traced
                gone(deleted)
            if finalizer is not None:
                finalizer(deleted)

        kind.__del__ = __del__

    def _make(self, made: Module | Optimizer) -> None:
        self._born[id(made)] = next(self._counter)
        self.pass_moment()

    def pass_moment(self) -> None:
        """Begin another moment: later deletions are not those of the same model."""
        self._moment.clear()

    def _take_model(self, root: Module) -> None:
        if "_modules" not in root.__dict__:
            return
        if any(id(root) in model.modules for model in self._moment) or next(_tensors(root), None) is None:
            return
        model = _describe_model(root, self._born.get(id(root), next(self._counter)))
        parts = [part for part in self._moment if part.place in model.modules]
        kept = [other for other in self._models if all(other is not part for part in parts)]
        self._models = [*kept, model][-_MOST:]
        self._moment.append(model)

    def _take_optimizer(self, optimizer: Optimizer) -> None:
        if "param_groups" in optimizer.__dict__:
            born = self._born.get(id(optimizer), next(self._counter))
            self._optimizers = [*self._optimizers, (born, self._describe(optimizer))][-_MOST:]

    def as_json(self) -> dict[str, object]:
        """Return the last states by name, for each model with that name in the order of construction.

        `trained` has the names of parameters that require a gradient.
        """
        gc.collect()
        for optimizer in list(self._alive):
            self._take_optimizer(optimizer)
        self.pass_moment()
        for root in find_roots():
            self._take_model(root)
        self._is_over = True
        fields: dict[str, dict[str, list[list[Summary]]]] = {"parameters": {}, "buffers": {}}
        trained: set[str] = set()
        for model in sorted(self._models, key=lambda one: one.born):
            trained.update(model.trained)
            for field, by_name in fields.items():
                for name, summary in getattr(model, field).items():
                    by_name.setdefault(name, []).append(summary)
        optimizers = [state for _, state in sorted(self._optimizers, key=lambda pair: pair[0])]
        return {**fields, "trained": sorted(trained), "optimizers": optimizers}


def _named(root: Module, field: str) -> Iterator[tuple[str, Tensor]]:
    for path, module in paths(root):
        for name, tensor in getattr(module, field).items():
            if tensor is not None:
                yield f"{path}.{name}".lstrip("."), tensor


def _tensors(root: Module) -> Iterator[Tensor]:
    for field in ("_parameters", "_buffers"):
        yield from (tensor for _, tensor in _named(root, field))


def _describe_model(root: Module, born: int) -> _Model:
    parameters, buffers = dict(_named(root, "_parameters")), dict(_named(root, "_buffers"))
    return _Model(
        born,
        id(root),
        frozenset(id(module) for _, module in paths(root)),
        {name: summarise(tensor) for name, tensor in parameters.items()},
        {name: summarise(tensor) for name, tensor in buffers.items()},
        [name for name, tensor in parameters.items() if tensor.requires_grad],
    )
