"""The inputs digest of a measurement: script, stack, engine, and on `sim` the simulated accelerator."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

from repros.engine.digest.python import normal_form
from repros.engine.digest.sources import PythonSources, cpp_digest, sha256
from repros.engine.header.keys import REPRO, VARIANT
from repros.model import Device, Repro, Stack, Variant

PACKAGE = Path(__file__).parents[2]
INSIDE = PACKAGE / "inside"
SIM = PACKAGE / "simulated_gpus"
"""The simulated accelerator; only cells on `sim` depend on it."""

IMPORT_HOOKS = SIM / "import_hooks.py"
"""A module of the simulator that every cell runs: `repros.inside` imports it."""

WATCH = PACKAGE / "diagnose/watch/inside"
"""Code of `repros watch` inside a program; cells do not run it."""

INSTALLER = PACKAGE / "engine/environments"
"""Installation of environments, of which only the installed versions count."""

ROOTS = ("engine/catalogue.py", "engine/plan.py", "engine/environment.py", "engine/cells.py")
"""Root modules of the engine; the modules that they import count as well."""

_LENGTH = 16


def inputs(repro: Repro, stack: Stack, device: Device) -> str:
    """Return the digest of all inputs of the verdicts of a repro on one stack and device.

    The inputs are the script's code and its decisive header keys, the stack's Python and locked versions, the engine,
    and on `sim` the simulated accelerator.
    """
    pins = sorted(map(str, stack.pins.values()))
    parts = [script(repro), stack.python, *pins, engine(), *([simulator()] if device is Device.SIM else [])]
    return sha256(part.encode() for part in parts)[:_LENGTH]


def script(repro: Repro) -> str:
    """Return the digest of a repro script: its code, dependencies and decisive header values.

    The values are parsed, so an explicit default or inherited value does not change the digest.
    """
    values = {key: getattr(repro, key) for key, rule in REPRO.items() if rule.decides}
    values |= {
        "dependencies": repro.dependencies,
        "variants": {variant.name: _decisive(variant) for variant in repro.variants},
    }
    code = normal_form(ast.parse(repro.path.read_text(encoding="utf-8")), lambda _: None)
    return sha256([code.encode(), json.dumps(values, sort_keys=True, default=str).encode()])


def _decisive(variant: Variant) -> dict[str, Any]:
    """Return the decisive values of a variant."""
    keys = [key for key, rule in VARIANT.items() if rule.decides]
    return {key: getattr(variant if hasattr(variant, key) else variant.signature, key) for key in keys}


@cache
def engine() -> str:
    """Return the digest of the engine, without the simulated accelerator."""
    roots = [PACKAGE / name for name in ROOTS]
    simulated = [path for path in SIM.iterdir() if path != IMPORT_HOOKS]
    return _python_sources().digest([*roots, *INSIDE.rglob("*.py")], without=(*simulated, WATCH, INSTALLER))


@cache
def simulator() -> str:
    """Return the digest of the simulated accelerator."""
    return sha256([_python_sources().digest([*SIM.glob("*.py")]).encode(), cpp_digest(SIM / "csrc").encode()])


def _python_sources() -> PythonSources:
    return PythonSources({"repros": PACKAGE})
