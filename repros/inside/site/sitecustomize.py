"""The start of every Python process of a cell, or of a program under `repros watch`, before its script.

Python imports a module of this name at start-up if one is on the path. Another one further down the path (a
distribution's, conda's) is run as well, since this one hides it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_hidden_sitecustomize() -> None:
    elsewhere = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _load_repros() -> None:
    """Make this copy of the project importable, without its folder's neighbours: none has to be installed here."""
    folder = os.path.dirname(os.path.dirname(_HERE))
    spec = importlib.util.spec_from_file_location(
        "repros", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["repros"] = module
    spec.loader.exec_module(module)


_run_hidden_sitecustomize()
_load_repros()
from repros.inside import contract  # noqa: E402 - it can be imported from here on

if contract.CELL in os.environ:
    from repros.inside import hook

    hook.install(os.environ[contract.CELL])
if contract.WATCH in os.environ:
    # By name and not by a statement, which would make the evidence depend on it: no cell runs it.
    importlib.import_module("repros.diagnose.watch.inside.install").install()
if os.environ.get(contract.SIM) == "cuda":
    from repros.simulated_gpus import startup

    startup.install()
