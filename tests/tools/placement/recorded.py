"""The observations of CUDA in `observed/`: on GPUs, and on the CUDA stub (tests/tools/cuda_stub)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .line import Line, Version

FILES = sorted((Path(__file__).parent / "observed").glob("*.json"))

UNSEEN = re.compile(r"CUDNN_STATUS|CUSOLVER_STATUS")
"""Said by a library of mathematics that has no driver, behind every check."""
COMPUTED = {
    "setitem_mask_value": "the number of elements that the mask chooses",
    "index_put_mask_and_one_element_elsewhere": "the number of elements that the mask chooses",
    "normal_mean": "whether a deviation is negative",
}
"""What the host reads from a kernel before it gets to the check, by the names of lines."""


def read(file: Path) -> dict[str, Any]:
    """What a device gave, as `observe.record` made it."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


def version(recorded: dict[str, Any]) -> Version:
    """torch's, with which it was recorded."""
    major, minor = recorded["torch"].split(".")[:2]
    return int(major), int(minor)


def is_stub(recorded: dict[str, Any]) -> bool:
    """Whether no kernel ran."""
    return bool(recorded["name"] == "CUDA stub")


def speaks_of(recorded: dict[str, Any], line: Line) -> bool:
    """Whether the record says what CUDA gives for a line."""
    if line.name not in recorded["observed"] or line.torch > version(recorded):
        return False
    unseen = line.expected.by_kernel or line.name in COMPUTED
    unseen = unseen or UNSEEN.search(recorded["observed"][line.name].get("error", "")) is not None
    return not (is_stub(recorded) and unseen)


def disagreements(recorded: dict[str, Any], lines: list[Line]) -> dict[str, str]:
    """For the lines that the record speaks of: how it differs from what the table expects."""
    found = {
        line.name: line.expected.disagreement(version(recorded), recorded["observed"][line.name])
        for line in lines
        if speaks_of(recorded, line)
    }
    return {name: why for name, why in found.items() if why}
