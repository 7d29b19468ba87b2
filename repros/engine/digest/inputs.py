"""The digest of one measurement's inputs: script, stack, engine, and on `sim` the simulated accelerator."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from repros.engine.digest.python import normal_form
from repros.engine.digest.sources import PythonSources, cpp_digest, sha256
from repros.engine.header.block import Block
from repros.engine.header.keys import REPRO, VARIANT, flattened
from repros.engine.values import Key
from repros.model import Device, Repro, Stack

PACKAGE = Path(__file__).parents[2]
INSIDE = PACKAGE / "inside"
SIM = PACKAGE / "simulated_gpus"
"""The simulated accelerator; only its own cells depend on it."""

IMPORT_HOOKS = SIM / "import_hooks.py"
"""A module of the simulator that every cell runs: `repros.inside` imports it."""

WATCH = PACKAGE / "watch/inside"
"""What `repros watch` runs inside a program; no cell does."""

INSTALLER = PACKAGE / "environments"
"""What installs, holds and removes environments; the versions that it installs count by themselves."""

ROOTS = ("engine/catalogue.py", "engine/plan.py", "engine/environment.py", "engine/cells.py")
"""The modules between a script and its verdict; what they import from this project counts with them."""

_LENGTH = 16


def inputs(repro: Repro, stack: Stack, device: Device) -> str:
    """Return a digest of everything that the verdicts of a repro on one stack and one device depend on.

    That is the script's code and the keys of its header that decide a verdict, the stack's Python and locked versions,
    the engine, and on `sim` the simulated accelerator.
    """
    pins = sorted(map(str, stack.pins.values()))
    parts = [script(repro.path), stack.python, *pins, engine(), *([simulator()] if device is Device.SIM else [])]
    return sha256(part.encode() for part in parts)[:_LENGTH]


def script(path: Path) -> str:
    """Return the digest of a repro script: its code, its dependencies and the header keys that decide a verdict."""
    source = path.read_text(encoding="utf-8")
    header = Block(path, source).data
    decisive = {
        "dependencies": header.get("dependencies"),
        "repro": _decisive(header.get("tool", {}).get("repro", {}), REPRO),
    }
    code = normal_form(ast.parse(source), lambda _: None)
    return sha256([code.encode(), json.dumps(decisive, sort_keys=True).encode()])


def _decisive(table: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the part of a header's table that decides a verdict."""
    found = {key: value for key, value in flattened(table, keys).items() if key in keys and keys[key].decides}
    if variants := table.get("variants"):
        found["variants"] = {name: _decisive(variant, VARIANT) for name, variant in variants.items()}
    return found


@cache
def engine() -> str:
    """Return the digest of everything between a script and its verdict, except the simulated accelerator."""
    roots = [PACKAGE / name for name in ROOTS]
    simulated = [path for path in SIM.iterdir() if path != IMPORT_HOOKS]
    return _python_sources().digest([*roots, *INSIDE.rglob("*.py")], without=(*simulated, WATCH, INSTALLER))


@cache
def simulator() -> str:
    """Return the digest of the simulated accelerator."""
    return sha256([_python_sources().digest([*SIM.glob("*.py")]).encode(), cpp_digest(SIM / "csrc").encode()])


def _python_sources() -> PythonSources:
    return PythonSources({"repros": PACKAGE})
