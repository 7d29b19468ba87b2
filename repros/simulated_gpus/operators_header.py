"""The generated C++ header that lists PyTorch's operators by their placement check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def operator_list(torch: Path) -> Path:
    """Return the path of `native_functions.yaml` of an installed torch."""
    return torch.parent / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"


def operators_header(listed: str) -> str:
    """Return the header for the text of `operator_list`."""
    entries = {entry["func"]: entry for entry in _parse_operators(listed)}
    arrays: dict[str, list[str]] = {
        "unchecked_operators": [],
        "operators_without_iterator": [],
        "operators_with_composite_for_others": [],
        "structured_operators": [],
    }
    for name, entry in entries.items():
        if "NoCheck" in entry.get("device_check", ""):
            arrays["unchecked_operators"].append(name)
        if "structured" in entry or "structured_delegate" in entry:
            arrays["structured_operators"].append(name)
        structured = entries.get(entry.get("structured_delegate", name), entry)
        if "structured" in structured and "structured_inherits" not in structured:
            arrays["operators_without_iterator"].append(name)
        keys = re.split(r"[ ,]+", entry.get("dispatch", ""))
        if {"CPU", "CUDA"} <= set(keys) and any(key.startswith("Composite") for key in keys):
            arrays["operators_with_composite_for_others"].append(name)
    definitions = (
        f"constexpr std::string_view {array}[] = {{\n" + "".join(f'    "aten::{name}",\n' for name in names) + "};\n"
        for array, names in arrays.items()
    )
    return "#pragma once\n#include <string_view>\n" + "".join(definitions)


def _parse_operators(text: str) -> Iterator[dict[str, str]]:
    """Yield the operators of a native_functions.yaml, each with its name, flat keys and the keys of `dispatch`."""
    for block in text.split("\n- func: ")[1:]:
        entry = {"func": re.split(r"[( ]", block, maxsplit=1)[0]}
        entry.update(re.findall(r"^  (\w+): +(.+?) *(?:#.*)?$", block, re.MULTILINE))
        entry["dispatch"] = ", ".join(re.findall(r"^    ([\w, ]+):", block, re.MULTILINE))
        yield entry
