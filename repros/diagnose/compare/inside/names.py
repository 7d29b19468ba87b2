"""The names that modules and parameters have without what wraps them, the same on one rank and on several.

A module's name is its path below the outermost module that holds it. Wrappers (DistributedDataParallel, what
`torch.compile` returns, FSDP, Fabric's and activation checkpoints) leave the path as if they were not there.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter

_HIDDEN = {
    *("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module", "_original_module"),
    "_fpw_module",
}
"""Attributes with the wrapped module, which only wrappers have."""
_WRAPPERS = {
    *("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "AveragedModel", "DeepSpeedEngine"),
    *("ShardedDataParallel", "_LightningModuleWrapperBase", "CheckpointWrapper"),
}
"""Classes whose attribute `module` is the wrapped module."""
_HELD_BY_NONE = "_ResultMetric"
"""Lightning's class of a logged value: searching for these would use up the scans."""
_MOST_SCANS = 100


class Names:
    """The names of this process's modules and parameters, searched when one without a name is called."""

    def __init__(self) -> None:
        self._modules: dict[int, tuple[weakref.ref[Module], str]] = {}
        """By `id`: a metric's hash changes with its state, and its `==` returns a metric."""
        self._parameters: dict[int, tuple[weakref.ref[Parameter], str]] = {}
        """By `id`, with a weak reference: another parameter may get the `id` of a deleted one."""
        self._roots: list[weakref.ref[Module]] = []
        self._scans = 0
        self._nameless: set[int] = set()
        """The parameters, by `id`, that were searched without success."""
        self._placed: dict[int, tuple[weakref.ref[Parameter], str]] = {}
        """The names of the parameters that no module holds, by `id`."""

    def of_module(self, module: Module) -> str:
        """Return a module's name; the class's for one that no other holds."""
        if self._known_module(module) is None and type(module).__name__ != _HELD_BY_NONE:
            self._scan(module)
        return self._name_module(module, type(module).__name__)

    def of_parameters(self, parameters: list[Parameter]) -> list[str | None]:
        """Return the names of parameters; None for one that no module holds."""
        unknown = [parameter for parameter in parameters if self._known(parameter) is None]
        if any(id(parameter) not in self._nameless for parameter in unknown):
            self._scan(None)
            self._nameless.update(id(parameter) for parameter in unknown)
        return list(map(self._known, parameters))

    def of_nameless(self, parameter: Parameter, place: int) -> str:
        """Return the name of a parameter that no module holds: its place in the first optimizer that has it."""
        reference, name = self._placed.get(id(parameter), (lambda: None, ""))
        if reference() is not parameter:
            name = f"parameter {place}"
            self._placed[id(parameter)] = (weakref.ref(parameter), name)
        return name

    def parameters(self) -> list[Parameter]:
        """Return the trained parameters of all modules that have a name, each once, in the order of their modules."""
        # Not by truth value: a module that torch.compile returns has the length of the wrapped one.
        roots = [root for root in (reference() for reference in self._roots) if root is not None]
        trained = (parameter for root in roots for parameter in root.parameters() if parameter.requires_grad)
        return list({id(parameter): parameter for parameter in trained}.values())

    def buffers(self, below: Module | None = None) -> dict[str, Tensor]:
        """Return the buffers of all modules with a name, by name, or of those below a module."""
        buffers: dict[str, Tensor] = {}
        chosen = None if below is None else {id(module) for module in below.modules()}
        for place, (reference, path) in self._modules.items():
            module = reference()
            if module is not None and (chosen is None or place in chosen):
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        buffers.setdefault(f"{path}.{name}", buffer)
        return buffers

    def _known_module(self, module: Module) -> str | None:
        reference, name = self._modules.get(id(module), (lambda: None, ""))
        return name if reference() is module else None

    def _name_module(self, module: Module, name: str) -> str:
        """Return a module's name: this one, unless it has one already."""
        known = self._known_module(module)
        if known is None:
            self._modules[id(module)] = (weakref.ref(module), name)
        return known or name

    def _known(self, parameter: Parameter) -> str | None:
        reference, name = self._parameters.get(id(parameter), (lambda: None, ""))
        return name if reference() is parameter else None

    def _scan(self, called: Module | None) -> None:
        """Name all modules of this process again; at most a few times, since it visits every object."""
        self._scans += 1
        if self._scans > _MOST_SCANS:
            return
        roots = find_roots()
        if called is not None and all(root is not called for root in roots):
            roots.append(called)
        self._roots = list(map(weakref.ref, roots))
        for root in roots:
            self._name(root)

    def _name(self, root: Module) -> None:
        for path, module in paths(root):
            self._name_module(module, path or type(_unwrap(module)).__name__)
            for name, parameter in module._parameters.items():
                if parameter is not None and self._known(parameter) is None:
                    self._parameters[id(parameter)] = (weakref.ref(parameter), f"{path}.{name}".lstrip("."))


def paths(module: Module, path: str = "", above: frozenset[int] = frozenset()) -> Iterator[tuple[str, Module]]:
    """Yield a module and all below it with their paths, without the attributes of wrappers."""
    if id(module) in above:
        return
    yield path, module
    for name, child in module._modules.items():
        if child is not None:
            below = path if _is_wrapped(module, name) else f"{path}.{name}".lstrip(".")
            yield from paths(child, below, above | {id(module)})


def _is_wrapped(module: Module, name: str) -> bool:
    """Return whether a module wraps its child of this name."""
    return name in _HIDDEN or (name == "module" and type(module).__name__ in _WRAPPERS)


def _unwrap(module: Module) -> Module:
    for _ in range(10):  # wrappers in one another
        wrapped = (child for name, child in module._modules.items() if child is not None and _is_wrapped(module, name))
        module = next(wrapped, module)
    return module


def find_roots() -> list[Module]:
    """Return the modules that no other module holds, those with the most modules below them first."""
    import torch

    kind = torch.nn.Module
    # By `type`: reading the `__class__` of a lazy object may import a module.
    modules = [value for value in gc.get_objects() if issubclass(type(value), kind) and "_modules" in value.__dict__]
    held = {id(child) for module in modules for child in module._modules.values() if child is not None}
    roots = [module for module in modules if id(module) not in held]
    return sorted(roots, key=lambda root: -sum(1 for _ in root.modules()))
