"""Start-up of every Python process of a job, or of a program under `repros watch`, before its script.

Python imports a module of this name at start-up if one is on the path. This one shadows others further down the path (a
distribution's, conda's), so it runs the next one itself.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_shadowed_sitecustomize() -> None:
    other_entries = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", other_entries)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _load_repros() -> None:
    """Make the package `repros` importable from this source folder, without adding the folder's parent to the path."""
    folder = os.path.dirname(os.path.dirname(_HERE))
    spec = importlib.util.spec_from_file_location(
        "repros", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["repros"] = module
    spec.loader.exec_module(module)


_run_shadowed_sitecustomize()
_load_repros()
from repros.inside import contract  # noqa: E402 - importable from here on

if contract.CELL in os.environ:
    from repros.inside import hook

    hook.install(os.environ[contract.CELL])
if contract.WATCH_MODULE in os.environ:
    # By name: an import statement would make the inputs digest depend on it, although no cell runs it.
    importlib.import_module(os.environ[contract.WATCH_MODULE]).install()
if os.environ.get(contract.SIM) == "cuda":
    from repros.simulated_gpus import startup

    startup.install()
