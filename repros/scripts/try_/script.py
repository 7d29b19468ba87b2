"""A script: its text, its name, and the modules next to it that it imports."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from repros.diagnose import issue
from repros.diagnose.issue import Issue
from repros.diagnose.issue.code import find_code
from repros.diagnose.issue.source import imports_of
from repros.engine.source import PROBLEMS, parse
from repros.model.errors import ReprosError
from repros.scripts.try_ import links
from repros.scripts.try_.needs import Needs, read_needs

_LARGEST = 2**20
"""Bytes of a script; a larger file is refused, and a larger module next to it is not searched for imports."""
_MOST_LOCAL_FILES = 200
"""Most files of a package next to a script that is copied with it; a larger package is a library."""


@dataclass(frozen=True)
class Script:
    """An untrusted Python script."""

    name: str
    """Its file's name: `train.py`."""
    source: str
    origin: str
    """Its name in messages."""
    local_modules: tuple[Path, ...] = ()
    """Modules and packages in its folder that it imports, directly or through each other."""
    left_out: tuple[Path, ...] = ()
    """Links among them that leave the folder, and what is no ordinary file; they are not copied."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules outside the standard library that it imports at its top level, in order."""
        local = {path.stem for path in (*self.local_modules, *self.left_out)}
        names = (name for name in imports_of(self.source) if name.partition(".")[0] not in local)
        return tuple(name for name in names if name.partition(".")[0] not in sys.stdlib_module_names)

    @cached_property
    def needs(self) -> Needs:
        """The packages that it needs.

        Raises:
            ReprosError: its PEP 723 block is invalid.
        """
        return read_needs(self.source, self.origin, self.modules)

    def copy_to(self, folder: Path) -> Path:
        """Write the script and its local modules into a folder; return the script's path there.

        Raises:
            OSError: a file cannot be read or written.
        """
        for path in self.local_modules:
            links.copy(path, folder / path.name, path.parent)
        script = folder / self.name
        script.write_text(self.source, encoding="utf-8")
        return script

    def words(self, python: Path, path: Path) -> list[str]:
        """Return the command that starts it.

        Args:
            python: the interpreter of the environment.
            path: the result of :meth:`copy_to`.
        """
        return [str(python), str(path)]

    def digest(self) -> str:
        """Return a digest of the names and contents of its source and its local modules.

        Raises:
            OSError: a module cannot be read.
        """
        digest = hashlib.sha256(f"{self.name}\0{self.source}".encode())
        for path in sorted(self.local_modules):
            for file in _files_of(path):
                digest.update(f"\0{file.relative_to(path.parent)}\0".encode("utf-8", "surrogateescape"))
                digest.update(file.read_bytes())
        return digest.hexdigest()


def read_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ReprosError: it cannot be read, or is not valid Python.
    """
    source = _read(path, "a Python script")
    _refuse_invalid_python(source, str(path))
    name = path.name if path.suffix == ".py" else f"{path.name}.py"
    folder = path.absolute().parent
    local = tuple(_find_local(source, folder))
    left_out = tuple(links.find_left_out(local, folder))
    return Script(name, source, str(path), tuple(path for path in local if path not in left_out), left_out)


def read_issue(path: Path, block: int | None = None) -> tuple[Script, Issue]:
    """Read an issue, and its script: the code block with that number, else the longest that imports something.

    Raises:
        ReprosError: the file cannot be read, or has no such block.
    """
    text = _read(path, "the text of an issue")
    code = find_code(text, str(path), block)
    _refuse_invalid_python(code.source, f"{code.location} of {path}")
    script = Script("issue.py", code.source, f"{code.location} of {path} (line {code.line})")
    return script, issue.read_issue(text, block)


def _find_local(source: str, folder: Path) -> Iterator[Path]:
    """Yield the modules that a source imports from its folder, and those that they import from there; links, too.

    Raises:
        ReprosError: one of them has too many files to be copied.
    """
    local_paths: set[Path] = set()
    sources = [source]
    while sources:
        for name in _imports_if_python(sources.pop()):
            top = name.partition(".")[0]
            path = next((path for path in (folder / f"{top}.py", folder / top) if path.exists()), None)
            files = [] if path is None else _files_of(path)
            if path is None or path in local_paths or len(files) > _MOST_LOCAL_FILES:
                continue
            local_paths.add(path)
            _refuse_large(path)
            if files or links.is_left_out(path, folder):
                yield path
            sources += [file.read_text("utf-8", "replace") for file in files if file.stat().st_size <= _LARGEST]


def _files_of(path: Path) -> list[Path]:
    """Return the Python files of a module or package, without what is left out."""
    return [file for file in links.find_files(path, path.parent) if file.suffix == ".py"]


def _refuse_large(path: Path) -> None:
    """Refuse a package that is too large to be copied for each run."""
    size = 0
    for count, file in enumerate(links.find_files(path, path.parent), 1):
        size += file.lstat().st_size
        if count > links.MOST_FILES or size > links.MOST_BYTES:
            raise ReprosError(
                f"{path} is imported by the script, so it is copied for each run, and has more than "
                f"{links.MOST_FILES} files or {links.MOST_BYTES // 10**6} MB; move what the script does not need "
                "out of it."
            )


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
        raise ReprosError(f"{path} is not UTF-8 text; expected {expected}.") from error


def _refuse_invalid_python(source: str, name: str) -> None:
    try:
        parse(source)
    except PROBLEMS as error:
        location = f"{name}:{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else name
        problem = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ReprosError(f"{location} is not valid Python ({problem}); expected a script.") from error
