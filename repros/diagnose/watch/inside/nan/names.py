"""The names of modules and parameters, below the outermost module that has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.location import is_library

if TYPE_CHECKING:
    from torch.nn import Module

_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module")
"""The attributes with the wrapped module: names are those of the program's own module."""


def _unwrapped(module: Module) -> Module:
    for _ in range(5):
        inner = next((module._modules[name] for name in _WRAPPERS if list(module._modules) == [name]), None)
        if inner is None or not _is_wrapper(module):
            return module
        module = inner
    return module


def _is_wrapper(module: Module) -> bool:
    return type(module).__module__.startswith(("torch.", "lightning", "pytorch_lightning", "accelerate"))


def _by_size(roots: Iterable[Module]) -> Iterator[tuple[str, Module]]:
    """Yield roots, the largest first: one root may be a part of another."""
    own = {id(inner): inner for root in list(roots) for inner in [_unwrapped(root)]}
    sized = sorted(own.values(), key=lambda root: -sum(1 for _ in root.modules()))
    return ((type(root).__name__, root) for root in sized)


def name_of_module(module: Module, roots: Iterable[Module]) -> str:
    """Return `Net.layers.2 (LayerNorm)`; `Net` for the outermost itself."""
    module = _unwrapped(module)
    kind = type(module).__name__
    for title, root in _by_size(roots):
        for name, inner in root.named_modules():
            if inner is module:
                return f"{title}.{_clean(name)} ({kind})" if name else title
    return kind


def names_of_parameters(roots: Iterable[Module]) -> dict[int, str]:
    """Return the names of all parameters, by `id`."""
    names: dict[int, str] = {}
    for title, root in _by_size(roots):
        for name, parameter in root.named_parameters():
            names.setdefault(id(parameter), f"{title}.{_clean(name)}")
    return names


def _clean(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in {"_orig_mod", "_fsdp_wrapped_module"})


def location_of_forward(module: Module) -> str | None:
    """Return `file:line forward` of a module's class if that is the program's own; None for a library's."""
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    if code is None or is_library(code.co_filename):
        return None
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"
