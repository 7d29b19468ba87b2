"""Start-up code of every Python process of a compared program: one seed, and a note that it used a simulated GPU.

Each line is written at once: those of several ranks would run together where torchrun starts Python unbuffered.

The project's own `sitecustomize` comes first on the path and runs this one. The program's own seeds come later and
win. `FOREIGN_NOTES` is the file for the notes.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import random
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NOTES = "FOREIGN_NOTES"


class _Seeding:
    """A finder that seeds a module's generator once the module has been executed.

    It stays for later searches: programs look whether there is a module before they import it.
    """

    def __init__(self, module: str, *path: str) -> None:
        self._module, self._path = module, path
        self._is_searching = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name != self._module or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_seed(module: ModuleType) -> None:
                execute(module)
                seed: Any = module
                for attribute in self._path:
                    seed = getattr(seed, attribute)
                seed(0)

            spec.loader.exec_module = execute_and_seed  # type: ignore[method-assign]
        return spec


def _note_use() -> None:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda and any(cuda.memory_stats(index).get("allocation.all.allocated") for index in range(cuda.device_count())):
        with open(os.environ[NOTES], "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing else is imported here
            file.write(f"{os.getpid()}\n")


if NOTES in os.environ:
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    random.seed(0)
    sys.meta_path[:0] = [_Seeding("numpy", "random", "seed"), _Seeding("torch", "manual_seed")]
    atexit.register(_note_use)
