"""Recordings made by hand: what the processes of a program write, without a program."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.diagnose.compare.inside.summary import ANGLE
from repros.diagnose.compare.recording import Recording


def summary(values: Sequence[float], shape: Sequence[int] | None = None, dtype: str = "float32") -> dict[str, Any]:
    """Return the summary of a tensor, as the recorder makes it."""
    return {
        "shape": list(shape if shape is not None else [len(values)]),
        "dtype": dtype,
        "hash": repr(list(values)),
        "sum": math.fsum(values),
        "abs": math.fsum(map(abs, values)),
        "min": min(values, default=0.0),
        "max": max(values, default=0.0),
        "cos": math.fsum(value * math.cos(place * ANGLE) for place, value in enumerate(values)),
        "sin": math.fsum(value * math.sin(place * ANGLE) for place, value in enumerate(values)),
    }


def rows(*values: float) -> dict[str, Any]:
    """Return a batch whose rows have one number each."""
    return {"number": len(values), "shapes": [["float32", 1]], "rows": [[repr(v), v, abs(v), v] for v in values]}


def forward(batch: Sequence[float], loss: float = 1.0, **outputs: Sequence[float]) -> dict[str, Any]:
    """Return a forward and a backward pass of a module `Net`."""
    return {
        "losses": [summary([loss], [])],
        "inputs": {"Net": rows(*batch)},
        "outputs": {name: [summary(values, [len(values), 1])] for name, values in outputs.items()},
        "roots": ["Net"],
    }


def step(
    *passes: Mapping[str, Any],
    before: Sequence[float] = (1.0, 2.0),
    after: Sequence[float] = (0.5, 1.5),
    gradient: Sequence[float] | None = (0.5, 0.5),
    rate: float = 0.1,
    state: Mapping[str, Sequence[float]] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return what one rank records of a step, of one parameter `weight`."""
    return {
        "kind": "step",
        "seeded": True,
        "compiled": False,
        "optimizer": 0,
        "kind_of_optimizer": "SGD",
        "groups": [{"options": {"lr": rate, "momentum": 0.0}, "names": ["weight"]}],
        "state": {f"{name} of weight": summary(values) for name, values in (state or {}).items()},
        "before": {"weight": summary(before)},
        "gradients": {"weight": None if gradient is None else summary(gradient)},
        "after": {"weight": summary(after)},
        "passes": list(passes) or [forward([1.0, 2.0], Net=[3.0, 4.0])],
        **changes,
    }


def evaluation(*passes: Mapping[str, Any], weight: Sequence[float] = (1.0, 2.0), **changes: Any) -> dict[str, Any]:
    """Return what one rank records of an evaluation of the parameter `weight`."""
    return {
        "kind": "evaluation",
        "seeded": True,
        "compiled": False,
        "cut": False,
        "parameters": {"weight": summary(weight)},
        "buffers": {},
        "passes": [{**one_pass, "losses": []} for one_pass in passes or [forward([1.0, 2.0], Net=[3.0, 4.0])]],
        **changes,
    }


def results(**values: Sequence[float]) -> dict[str, Any]:
    """Return what one rank got between two steps: by kind numbers, each from a call of its own in `main`."""
    kept = [
        {"kind": kind, "what": f"{kind}()", "in": "main", "values": {"": summary([value], [])}}
        for kind, several in values.items()
        for value in several
    ]
    counts = {kind: len(several) for kind, several in values.items()}
    return {"kind": "results", "seeded": True, "compiled": False, "results": kept, "counts": counts}


def end(*weights: Sequence[float], rate: float = 0.1, trained: Sequence[str] = ("weight",)) -> dict[str, Any]:
    """Return what one rank records at its end, of models with one parameter `weight` and of an optimizer."""
    group = {"options": {"lr": rate}, "names": ["weight"]}
    return {
        "kind": "end",
        "seeded": True,
        "compiled": False,
        "parameters": {"weight": [summary(values) for values in weights or [(0.5, 1.5)]]},
        "buffers": {},
        "trained": list(trained),
        "optimizers": [{"kind_of_optimizer": "SGD", "groups": [group], "state": {}}],
    }


def recording(folder: Path, *ranks: Sequence[Mapping[str, Any]], code: int = 0) -> Recording:
    """Return a recording of these steps of each rank, written into a folder."""
    folder.mkdir()
    for rank, steps in enumerate(ranks):
        lines = [
            {"event": "recorded", "rank": rank, "pid": rank + 1, "time": 1.5, "kind": each["kind"], "number": number}
            | {name: value for name, value in each.items() if name != "kind"}
            | {"world": len(ranks)}
            for number, each in enumerate(steps, 1)
        ]
        (folder / f"{rank + 1}.jsonl").write_text("".join(f"\n{json.dumps(line)}\n" for line in lines), "utf-8")
    return Recording(folder, code)
