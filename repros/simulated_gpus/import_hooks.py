"""Post-import hooks: run an action once a module has been imported, without importing it.

One finder is put in front of `sys.meta_path`. It lets the other finders find the module and wraps the loader that they
return, so the action runs right after the module's own code and before any other code sees the module.
"""

from __future__ import annotations

import sys
from _thread import get_ident  # threading would be one more import in every process
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_actions: dict[str, list[Callable[[ModuleType], None]]] = {}
_first: dict[str, list[Callable[[ModuleSpec], None]]] = {}


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Call `action(module)` once the module `name` has been executed; immediately if it has been already."""
    module = sys.modules.get(name)
    # A module that is still executing is in sys.modules too; its spec says so.
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        action(module)
        return
    _actions.setdefault(name, []).append(action)
    _install_finder()


def before_import(name: str, action: Callable[[ModuleSpec], None]) -> None:
    """Call `action(spec)` once the module `name` has been found, before it is created.

    An extension module may be initialised when it is created.
    """
    _first.setdefault(name, []).append(action)
    _install_finder()


def _install_finder() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


# The two classes have the methods of importlib.abc's classes without inheriting from them: Python 3.11's importlib.abc
# imports pathlib, tempfile and shutil, and this module is imported by every process of a job.


class _Finder:
    """A finder that queries the finders after it in `sys.meta_path` and wraps the loader of the spec.

    Another finder may query all others as well, such as that of a second copy of this module. `_asking` ends the
    recursion between the two.
    """

    def __init__(self) -> None:
        self._asking: set[tuple[int, str]] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        asked = (get_ident(), name)
        if asked in self._asking or (name not in _actions and name not in _first):
            return None
        self._asking.add(asked)
        try:
            spec = self._ask_the_others(name, path, target)
        finally:
            self._asking.discard(asked)
        if spec is not None:
            for action in _first.pop(name, ()):
                action(spec)
            if spec.loader is not None:
                spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec

    def _ask_the_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                return spec
        return None


class _Loader:
    """A loader that runs the actions after the wrapped loader; all other attributes are the wrapped one's."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Tools such as inspect and pickle ask a module's loader for more than loading.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for action in _actions.pop(module.__name__, ()):
            action(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


_FINDER = _Finder()
