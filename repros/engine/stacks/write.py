"""Writing of stacks: the TOML file, the lock, and the check of a new name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import tomlkit
from packaging.requirements import Requirement
from tomlkit.items import Table

from repros.model.errors import ReprosError
from repros.model.settings import STACKS, CatalogueLocations
from repros.model.stack import Size, Stack

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_RESERVED = ("home", "bisections")
"""`--stack home` is each repro's reference stack, and `evidence/bisections` is not the evidence of a stack."""


def folder_for_new(locations: CatalogueLocations) -> Path:
    """Return the folder for new stacks: of the first private catalogue, or the package's own."""
    return next((folder / "stacks" for folder in locations.private_folders), STACKS)


def check_new_name(name: str, folder: Path, taken: tuple[str, ...]) -> None:
    """Refuse an invalid name of a new stack.

    Args:
        name: the name.
        folder: the folder of the new stack.
        taken: the names of existing stacks.

    Raises:
        ReprosError: the name is taken, reserved, or not a valid file name.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        expected = "expected letters, digits, '.', '_' and '-', such as '2026-11', and neither 'home' nor 'bisections'"
        raise ReprosError(f"{name!r} cannot be the name of a stack; {expected}.")
    if name in taken or any(file.exists() for file in _files(folder, name)):
        raise ReprosError(f"the stack {name!r} exists already; choose another name.")


def format_stack(stack: Stack) -> str:
    """Return the text of a stack's TOML file."""
    document = tomlkit.document()
    document["about"] = stack.about
    document["python"] = stack.python
    requirements = tomlkit.array().multiline(multiline=True)
    requirements.extend(_pin_first(requirement) for requirement in stack.requirements)
    document["requirements"] = requirements
    document["until"] = stack.until
    document.add(tomlkit.nl())
    if stack.cuda is None:
        document.add(tomlkit.comment("Its size has not been measured; 2023-05.toml says how."))
        return tomlkit.dumps(document)
    document["cuda"] = _size_table(stack.cuda, "Measured as in 2023-05.toml.")
    document.add(tomlkit.nl())
    if stack.cpu is None:
        document.add(tomlkit.comment("torch's CPU build is on a separate index and has not been measured."))
        return tomlkit.dumps(document)
    document["cpu"] = _size_table(stack.cpu, "The same with torch's CPU build.")
    return tomlkit.dumps(document)


def write_stack(stack: Stack, lock: str) -> Path:
    """Write a stack's lock and then its TOML file, both or none; return the path of the latter.

    Raises:
        ReprosError: the folder cannot be written.
    """
    file, locked = _files(stack.lock.parent, stack.name)
    with _writing_all_or_none(file, locked):
        locked.parent.mkdir(parents=True, exist_ok=True)
        locked.write_text(lock, encoding="utf-8")
        file.write_text(format_stack(stack), encoding="utf-8")
    return file


def remove_stack(stack: Stack) -> None:
    """Delete both files of a stack."""
    for file in _files(stack.lock.parent, stack.name):
        file.unlink(missing_ok=True)


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.toml", folder / f"{name}.lock.txt"


@contextlib.contextmanager
def _writing_all_or_none(*files: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # including KeyboardInterrupt
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            remedy = "name a catalogue that you can write with --catalogue"
            raise ReprosError(f"{files[0]} cannot be written ({error.strerror}); {remedy}.") from error
        raise


def _pin_first(requirement: Requirement) -> str:
    """Return `torch==2.15.0,<2.16`, the pin first; `str()` of packaging keeps no order."""
    bounds = sorted(requirement.specifier, key=lambda bound: (bound.operator not in {"==", "==="}, str(bound)))
    return requirement.name + ",".join(map(str, bounds))


def _size_table(size: Size, comment: str) -> Table:
    table = tomlkit.table()
    table.add(tomlkit.comment(comment))
    table["download"] = tomlkit.value(f"{size.download:_}")  # parsed, so that the underscores stay
    table["unpacked"] = tomlkit.value(f"{size.unpacked:_}")
    return table
