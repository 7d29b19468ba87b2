"""The diff between the definitions of two variants, such as `failing` and `fixed`."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from pathlib import Path

from repros.engine.source import Block, first_line

_CONTEXT = 3


def variant_diff(script: Path, before: str = "failing", after: str = "fixed") -> list[str]:
    """Return a unified diff without its file names; empty if the script does not define both variants.

    A definition is a function or a class at the top level; `Failing` counts as `failing`.
    """
    source = script.read_text(encoding="utf-8")
    definitions = dict(_definitions(source))
    if before not in definitions or after not in definitions:
        return []
    lines = difflib.unified_diff(definitions[before], definitions[after], n=_CONTEXT, lineterm="")
    return list(lines)[2:]


def _definitions(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the lower-case name and the lines of every top-level definition, decorators included."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, Block):
            yield node.name.lower(), lines[first_line(node) - 1 : node.end_lineno]
