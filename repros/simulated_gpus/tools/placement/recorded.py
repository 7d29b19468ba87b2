"""The observations of CUDA in `observed/`: on GPUs, and on the CUDA stub (repros/simulated_gpus/tools/cuda_stub)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .line import Line, Version

FILES = sorted((Path(__file__).parent / "observed").glob("*.json"))

UNSEEN = re.compile(r"CUDNN_STATUS|CUSOLVER_STATUS")
"""Errors of math libraries without a driver, raised after every check."""
COMPUTED = {
    "setitem_mask_value": "the number of elements that the mask chooses",
    "index_put_mask_and_one_element_elsewhere": "the number of elements that the mask chooses",
    "normal_mean": "whether a deviation is negative",
}
"""Values that the host reads from a kernel before the check, by line name."""


def load(file: Path) -> dict[str, Any]:
    """Return a record that `observe.record` made."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


def torch_version(recorded: dict[str, Any]) -> Version:
    """Return the version of the torch that a record was made with."""
    major, minor = recorded["torch"].split(".")[:2]
    return int(major), int(minor)


def is_stub(recorded: dict[str, Any]) -> bool:
    """Return whether a record was made on the CUDA stub, where no kernel runs."""
    return bool(recorded["name"] == "CUDA stub")


def covers(recorded: dict[str, Any], line: Line) -> bool:
    """Return whether a record shows CUDA's outcome for a line."""
    if line.name not in recorded["observed"] or line.torch > torch_version(recorded):
        return False
    unobservable = line.expected.by_kernel or line.name in COMPUTED
    unobservable = unobservable or UNSEEN.search(recorded["observed"][line.name].get("error", "")) is not None
    return not (is_stub(recorded) and unobservable)


def disagreements(recorded: dict[str, Any], lines: list[Line]) -> dict[str, str]:
    """Return how a record differs from the table, by the names of the lines that it covers."""
    found = {
        line.name: line.expected.disagreement(torch_version(recorded), recorded["observed"][line.name])
        for line in lines
        if covers(recorded, line)
    }
    return {name: difference for name, difference in found.items() if difference}
