"""Stacks as data: one TOML file and one lock each, in `repros/stacks` and in private catalogues."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from repros.model.errors import ReprosError, UnknownNameError
from repros.model.settings import PACKAGE, STACKS, CatalogueLocations
from repros.model.stack import Size, Stack


def load_stacks(locations: CatalogueLocations = PACKAGE) -> dict[str, Stack]:
    """Return the stacks of the package and of private catalogues by name, oldest first.

    If names clash, the package's stack takes precedence.

    Raises:
        ReprosError: a file of a private stack is refused.
    """
    return _load((STACKS, *(folder / "stacks" for folder in locations.private_folders)), locations.torch_build)


@cache
def _load(folders: tuple[Path, ...], torch_build: str) -> dict[str, Stack]:
    stacks: dict[str, Stack] = {}
    for folder in folders:
        for file in sorted(folder.glob("*.toml")):
            stacks.setdefault(file.stem, replace(read_stack(file), torch_build=torch_build))
    return {stack.name: stack for stack in sorted(stacks.values(), key=lambda stack: stack.until)}


def is_private(stack: Stack) -> bool:
    """Return whether a stack belongs to a private catalogue."""
    return stack.lock.parent != STACKS


def stack_clashes(locations: CatalogueLocations) -> list[str]:
    """Return a sentence for each private stack that is ignored because its name is taken."""
    used = {stack.name: stack.lock.parent.resolve() for stack in load_stacks(locations).values()}
    files = [file for folder in locations.private_folders for file in sorted((folder / "stacks").glob("*.toml"))]
    return [
        f"{file}: the name {file.stem} is also that of a stack in {used[file.stem]}; this one is left out, rename it"
        for file in files
        if used[file.stem] != file.parent.resolve()
    ]


def stack(name: str, locations: CatalogueLocations = PACKAGE) -> Stack:
    """Return the stack of that name, of the package or of a private catalogue.

    Raises:
        UnknownNameError: no stack has that name; the message names the nearest.
    """
    return pick(load_stacks(locations), name)


def pick(stacks: Mapping[str, Stack], name: str) -> Stack:
    """Return the stack of that name.

    Raises:
        UnknownNameError: none has that name; the message names the nearest.
    """
    if name not in stacks:
        raise UnknownNameError("stack", name, stacks)
    return stacks[name]


def read_stack(file: Path) -> Stack:
    """Read one stack; its lock is `<name>.lock.txt` in the same folder.

    Raises:
        ReprosError: the file is not TOML, lacks a key or has a wrong value.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return Stack(
            name=file.stem,
            about=_text(table["about"]),
            python=_text(table["python"]),
            requirements=tuple(Requirement(text) for text in table["requirements"]),
            until=_day(table["until"]),
            lock=file.with_name(f"{file.stem}.lock.txt"),
            cuda=Size(**table["cuda"]) if "cuda" in table else None,
            cpu=Size(**table["cpu"]) if "cpu" in table else None,
        )
    except KeyError as error:
        raise ReprosError(f"{file}: lacks {error}; expected about, python, requirements and until.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReprosError(f"{file}: cannot be read as TOML ({error}).") from error
    except (TypeError, InvalidRequirement) as error:
        remedy = 'expected texts for about and python, requirements such as ["torch==2.6.0"], and a day for until'
        raise ReprosError(f"{file}: {error}; {remedy}.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _day(value: Any) -> dt.date:
    if type(value) is not dt.date:
        raise TypeError(f"{value!r} is not a day such as 2026-11-20")
    return value
