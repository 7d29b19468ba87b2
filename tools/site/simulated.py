"""The simulated accelerator's error table: what CUDA's own code refuses, observed on each torch."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

_TABLE = Path("repros/simulated_gpus/tools/placement")


@dataclass(frozen=True)
class Refusal:
    """One expression that CUDA refuses."""

    name: str
    expression: str
    messages: tuple[tuple[str, str], ...]
    """Each message, with the releases of torch that give it."""


def refusals(root: Path) -> tuple[list[Refusal], list[str]]:
    """Return the refused expressions and the releases of torch on which they were observed."""
    records = [
        json.loads(file.read_text(encoding="utf-8")) for file in sorted((root / _TABLE / "observed").glob("*.json"))
    ]
    records = [record for record in records if record["name"] == "CUDA stub"]
    records.sort(key=lambda record: Version(record["torch"]))
    releases = [record["torch"].partition("+")[0] for record in records]
    expressions = dict(_expressions(root / _TABLE))
    found = [
        Refusal(name, expressions[name], tuple(_messages(name, records)))
        for name in expressions
        if any("error" in record["observed"].get(name, {}) for record in records)
    ]
    return found, releases


def _messages(name: str, records: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each message once, with the first and the last release of each run of releases that give it."""
    runs: list[tuple[str, list[str]]] = []
    for record in records:
        if name in record["observed"]:
            error = record["observed"][name].get("error", "runs")
            release = record["torch"].partition("+")[0]
            if runs and runs[-1][0] == error:
                runs[-1][1].append(release)
            else:
                runs.append((error, [release]))
    for error, each in runs:
        yield error, each[0] if len(each) == 1 else f"{each[0]} to {each[-1]}"


def _expressions(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the expression of each line of the table; nothing is imported, as that would need torch."""
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Line":
                texts = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
                if len(texts) == 2 and all(isinstance(text, str) for text in texts):  # noqa: PLR2004 - name, expression
                    yield str(texts[0]), str(texts[1])
