"""Small programs whose values, or errors, are recorded on a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_LONGEST = 400
"""Characters of a value or a message."""


class Probe(NamedTuple):
    """A small program; the value of its last expression is what is recorded."""

    name: str
    program: str
    """Statements separated by newlines; the last is an expression."""


def run(probe: Probe) -> dict[str, Any]:
    """Return the `value` of a probe as JSON, or the first line of its `error`."""
    names: dict[str, Any] = {"torch": torch, "device": torch.device("cuda", 0)}
    *statements, last = probe.program.splitlines()
    try:
        exec("\n".join(statements), names)  # noqa: S102 # a program of the tables
        return {"value": to_json(eval(last, names))}  # noqa: S307 # an expression of the tables
    except Exception as error:  # any error is an observation
        first = str(error).splitlines()[0] if str(error) else ""
        return {"error": f"{type(error).__name__}: {first}"[:_LONGEST]}


def record(probes: list[Probe]) -> dict[str, Any]:
    """Return what each probe showed, by name, with the torch and the device that showed it."""
    about = {"torch": torch.__version__, "name": torch.cuda.get_device_name(0)}
    return {**about, "observed": {probe.name: run(probe) for probe in probes}}


def to_json(value: Any) -> Any:
    """Return a value as JSON: numbers, texts and collections as they are, of anything else the type's name."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, torch.Tensor):
        return to_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [to_json(item) for item in (sorted(value) if isinstance(value, set) else value)]
    return f"<{type(value).__name__}>"
