"""The stacks as data: one TOML file and one lock each, beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

from repros.errors import UnknownNameError
from repros.model.stack import Size, Stack

_HERE = Path(__file__).parent


@cache
def load_stacks() -> dict[str, Stack]:
    """Return all stacks by name, oldest first."""
    stacks = [read_stack(file) for file in _HERE.glob("*.toml")]
    return {stack.name: stack for stack in sorted(stacks, key=lambda stack: stack.until)}


def stack(name: str) -> Stack:
    """Return the stack of that name.

    Raises:
        UnknownNameError: no stack has that name; the message names the nearest.
    """
    stacks = load_stacks()
    if name not in stacks:
        raise UnknownNameError("stack", name, stacks)
    return stacks[name]


def read_stack(file: Path) -> Stack:
    """Read one stack; its lock is `<name>.lock.txt` beside the file."""
    facts = tomllib.loads(file.read_text(encoding="utf-8"))
    return Stack(
        name=file.stem,
        about=facts["about"],
        python=facts["python"],
        requirements=tuple(Requirement(text) for text in facts["requirements"]),
        until=facts["until"],
        lock=file.with_name(f"{file.stem}.lock.txt"),
        cuda=Size(**facts["cuda"]),
        cpu=Size(**facts["cpu"]) if "cpu" in facts else None,
    )
