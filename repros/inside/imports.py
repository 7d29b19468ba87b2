"""Runs an action as soon as a module has been imported, without importing it.

`sys.meta_path` gets one finder in front; it lets the others find the module and wraps the loader they give, so the
action runs right after the module's own code and before anybody else sees the module.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_actions: dict[str, list[Callable[[ModuleType], None]]] = {}


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Call `action(module)` once the module `name` has been executed; at once if it is there already."""
    module = sys.modules.get(name)
    # A module that is still executing is in sys.modules too; its spec says so.
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        action(module)
        return
    _actions.setdefault(name, []).append(action)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: asks the finders behind it and wraps what they found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads as the wrapped loader does, then runs the actions; looks like the wrapped one otherwise."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Tools such as inspect and pickle ask a module for its loader's further abilities.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for action in _actions.pop(module.__name__, ()):
            action(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


_FINDER = _Finder()
