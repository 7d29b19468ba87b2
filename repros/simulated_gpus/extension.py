"""The compiled extension of this process."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from typing import Any

_loaded: list[Any] = []


def load(path: str) -> None:
    """Import the extension's Python module from its shared object, which is loaded already."""
    loader = importlib.machinery.ExtensionFileLoader("_sim", path)
    spec = importlib.util.spec_from_file_location("_sim", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    _loaded.append(module)


def get() -> Any:
    """Return the module `_sim`."""
    return _loaded[0]


def device_index(index: int | None) -> int:
    """Return a device's index; the current device's for None or a negative one."""
    return int(get().current_device()) if index is None or index < 0 else int(index)
