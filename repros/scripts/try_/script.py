"""A stranger's script: its text, its name, and the modules beside it that it imports."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.model.errors import ReprosError
from repros.scripts.try_.issue import find_code
from repros.scripts.try_.source import PROBLEMS, imports_of, parse

_LARGEST = 2**20
"""Bytes of a script; a larger file is none."""
_MOST_BESIDE = 200
"""Files that are copied beside a script; a larger package is a library, which nobody has installed."""


@dataclass(frozen=True)
class Script:
    """A script that somebody else has written."""

    name: str
    """Its file's name: `train.py`."""
    source: str
    origin: str
    """What the user calls it, for sentences."""
    beside: tuple[Path, ...] = ()
    """Modules and packages that lie beside it and that it imports, itself or by one of them."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules outside the standard library that it imports at its top level, in their order."""
        own = {path.stem for path in self.beside}
        found = (name for name in imports_of(self.source) if name.partition(".")[0] not in own)
        return tuple(name for name in found if name.partition(".")[0] not in sys.stdlib_module_names)

    def copy_to(self, folder: Path) -> Path:
        """Write the script, and what lies beside it, into a folder; return its path there.

        Raises:
            OSError: a file cannot be read or written.
        """
        for path in self.beside:
            if path.is_dir():
                shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                shutil.copy(path, folder / path.name)
        script = folder / self.name
        script.write_text(self.source, encoding="utf-8")
        return script

    def words(self, python: Path, place: Path) -> list[str]:
        """Return the command that starts it; :class:`repros.scripts.try_.program.Program` explains it."""
        return [str(python), str(place)]

    def digest(self) -> str:
        """Return a digest of its source and of the modules beside it, by their names and contents.

        Raises:
            OSError: a module cannot be read.
        """
        found = hashlib.sha256(f"{self.name}\0{self.source}".encode())
        for path in sorted(self.beside):
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                found.update(f"\0{file.relative_to(path.parent)}\0".encode("utf-8", "surrogateescape"))
                found.update(file.read_bytes())
        return found.hexdigest()


def read_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ReprosError: it cannot be read, or is no Python.
    """
    source = _read(path, "a Python script")
    _refuse_what_is_no_python(source, str(path))
    name = path.name if path.suffix == ".py" else f"{path.name}.py"
    return Script(name, source, str(path), tuple(_find_beside(source, path.absolute().parent)))


def read_issue(path: Path, block: int | None = None) -> Script:
    """Read the script of an issue: the code block with that number, else the longest that imports something.

    Raises:
        ReprosError: the file cannot be read, or has no such block.
    """
    code = find_code(_read(path, "the text of an issue"), str(path), block)
    _refuse_what_is_no_python(code.source, f"{code.place} of {path}")
    return Script("issue.py", code.source, f"{code.place} of {path} (line {code.line})")


def _find_beside(source: str, folder: Path) -> Iterator[Path]:
    """Yield what a source imports from its own folder, and what that imports from there."""
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        for name in _imports_if_python(waiting.pop()):
            top = name.partition(".")[0]
            path = next((path for path in (folder / f"{top}.py", folder / top) if path.exists()), None)
            files = [] if path is None else sorted(path.rglob("*.py")) if path.is_dir() else [path]
            if path is None or path in seen or not 0 < len(files) <= _MOST_BESIDE:
                continue
            seen.add(path)
            yield path
            waiting += [file.read_text("utf-8", "replace") for file in files]


def _imports_if_python(source: str) -> list[str]:
    try:
        return imports_of(source)
    except PROBLEMS:
        return []


def _read(path: Path, expected: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except OSError as error:
        raise ReprosError(f"{path} cannot be read ({error.strerror}); expected {expected}.") from error
    if len(raw) > _LARGEST:
        raise ReprosError(f"{path} is larger than 1 MiB; expected {expected}.")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ReprosError(f"{path} is no text in UTF-8; expected {expected}.") from error


def _refuse_what_is_no_python(source: str, name: str) -> None:
    try:
        parse(source)
    except PROBLEMS as error:
        place = f"{name}:{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else name
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ReprosError(f"{place} is no Python ({what}); expected a script.") from error
