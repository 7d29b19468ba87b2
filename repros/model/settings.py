"""The catalogues in use: the package's own, and private ones with their evidence, stacks and golden logs beside them.

A private catalogue is a folder of scripts. The folders `evidence`, `stacks` and `golden` in it hold what belongs to
them, and nothing of it is ever written into the package. A project names its catalogues once, in `pyproject.toml`:

    [tool.repros]
    prefix = "ACME"
    catalogue = ["failures"]

The environment variable `REPROS_CATALOGUE` names them, too, and takes precedence. Both add to the package's own
catalogue; the option `--catalogue` takes the place of all. A `pyproject.toml` of another user decides nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.model.errors import ReprosError

_DATA = Path(__file__).parents[1]
CATALOGUE = _DATA / "catalogue"
"""The catalogue that comes with the package."""
EVIDENCE, STACKS = _DATA / "evidence", _DATA / "stacks"
"""The package's own measurements, and its stacks with their locks."""
VARIABLE = "REPROS_CATALOGUE"
"""Environment variable with the places of private catalogues, separated as in `PATH`."""
OWN_PREFIX, DEFAULT_PREFIX = "RPR", "LOCAL"
"""Prefix of the package's ids, and that of a private catalogue whose project sets none."""

_PREFIX = re.compile(r"[A-Z][A-Z0-9]{1,9}")
_LARGEST = 2**20
"""Characters of a `pyproject.toml` that are read; a larger one is no project's, and a device has no end."""
_KEYS = ("prefix", "catalogue", "audit")
_BESIDE = ("evidence", "stacks", "golden")
"""Folders in a catalogue that hold no scripts."""


@dataclass(frozen=True)
class Settings:
    """What a project sets for its private catalogues."""

    prefix: str = DEFAULT_PREFIX
    """The start of new ids: `ACME` for `ACME-0001`."""
    catalogue: tuple[Path, ...] = ()
    """Files and folders, absolute."""


@dataclass(frozen=True)
class Origin:
    """The catalogue that a script is of."""

    folder: Path | None = None
    """The folder of the private catalogue, with its `evidence`, `stacks` and `golden`; None for the package's own."""
    option: Path | None = None
    """What `--catalogue` names, so that a command finds the script; None where that is needless."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words with which a printed command finds the script again: `--catalogue PATH`, or none."""
        if self.option is None:
            return ()
        near = self.option.absolute().is_relative_to(Path.cwd())
        return ("--catalogue", os.path.relpath(self.option) if near else str(self.option))


OWN = Origin()
"""Of the package's own catalogue."""


@dataclass(frozen=True)
class CatalogueLocations:
    """The catalogues in use; without any argument, the package's own alone."""

    given: tuple[Path, ...] = ()
    """Files and folders of scripts from the option `--catalogue`, in the place of all others."""
    named: tuple[Path, ...] = ()
    """Files and folders that the project's settings add to the package's own catalogue."""

    @property
    def scripts(self) -> tuple[Path, ...]:
        """The files and folders whose scripts are in use."""
        return self.given or (CATALOGUE, *self.named)

    @property
    def private_folders(self) -> tuple[Path, ...]:
        """The folders of the private catalogues, each with its `evidence`, `stacks` and `golden`."""
        places = self.given or self.named
        return tuple(dict.fromkeys(_folder(place) for place in places if not _is_own(place)))

    def origin_of(self, script: Path) -> Origin:
        """Return the catalogue that a script is of."""
        if _is_own(script):
            return OWN
        resolved = script.resolve()
        holding = [folder for folder in self.private_folders if resolved.is_relative_to(folder.resolve())]
        # Of nested folders the innermost; a script outside of all is its own folder's catalogue.
        folder = max(holding, key=lambda folder: len(folder.parts)) if holding else _folder(script)
        if any(resolved.is_relative_to(place.resolve()) for place in self.named):
            return Origin(folder)
        given = [place for place in self.given if resolved.is_relative_to(place.resolve())]
        return Origin(folder, given[0] if given else script)


PACKAGE = CatalogueLocations()
"""The package's own catalogue alone."""


def find_catalogues(given: Iterable[Path] = (), folder: Path | None = None) -> CatalogueLocations:
    """Return the catalogues in use.

    Args:
        given: files and folders of scripts, from the option `--catalogue`.
        folder: the folder whose project's settings count; the working directory by default.

    Raises:
        ReprosError: a wrong value in `[tool.repros]`, or a place that does not exist.
    """
    return CatalogueLocations(tuple(given), read_settings(folder).catalogue)


def read_settings(folder: Path | None = None) -> Settings:
    """Return the settings of the project around a folder, by default the working directory.

    Raises:
        ReprosError: a wrong value in `[tool.repros]`, or a place that does not exist.
    """
    folder, variable = (folder or Path.cwd()).absolute(), os.environ.get(VARIABLE, "")
    file, table = _find_table(folder)
    found = _parse_settings(file, table) if file is not None and may_decide(file, folder) else Settings()
    if not variable:
        return found
    names = [name for name in variable.split(os.pathsep) if name]
    return Settings(found.prefix, _places(VARIABLE, Path.cwd(), names))


def foreign_settings(folder: Path | None = None) -> Path | None:
    """Return the file whose settings would count for a folder if it were not another user's; None if there is none."""
    folder = (folder or Path.cwd()).absolute()
    file, _ = _find_table(folder)
    return None if file is None or may_decide(file, folder) else file


def may_decide(found: Path, folder: Path) -> bool:
    """Return whether a file or folder that was found above a folder counts for the user who works there.

    It must be the user's, root's or of the owner of that folder, who could put it there as well. In `/tmp` and on a
    shared disk anybody can put one above; git refuses a repository of another owner for the same reason.
    """
    trusted = {os.geteuid(), 0}
    with contextlib.suppress(OSError):
        trusted.add(folder.stat().st_uid)
    # A link's owner chose what it leads to.
    return {found.stat().st_uid, found.lstat().st_uid} <= trusted


def _find_table(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest `pyproject.toml` with a table `[tool.repros]`, in a folder or above it, and the table."""
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file() and (table := _read_table(file)) is not None:
            return file, table
    return None, {}


def _is_own(path: Path) -> bool:
    return path.resolve().is_relative_to(CATALOGUE)


def _folder(place: Path) -> Path:
    """Return a place's folder; for a file the nearest one above it that has evidence, stacks or golden logs."""
    if place.is_dir():
        return place
    own = place.absolute().parent
    for parent in (own, *own.parents):
        beside = [parent / name for name in _BESIDE if (parent / name).is_dir()]
        if any(may_decide(folder, own) for folder in beside):
            return parent
    return own


def _read_table(file: Path) -> dict[str, Any] | None:
    """Return the table `[tool.repros]`; None if the file has none, or is not about this project and damaged."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_LARGEST)
        table = tomllib.loads(text).get("tool", {}).get("repros") if "repros" in text else None
    except (OSError, UnicodeDecodeError, AttributeError, RecursionError, tomllib.TOMLDecodeError):
        # Whoever needs this file for itself reports it: `repros audit` does.
        return None
    return table if isinstance(table, dict) else None


def _parse_settings(file: Path, table: dict[str, Any]) -> Settings:
    if unknown := [key for key in table if key not in _KEYS]:
        raise ReprosError(f"{file}: unknown key {unknown[0]!r} in [tool.repros]; expected: {', '.join(_KEYS)}.")
    prefix, names = table.get("prefix", DEFAULT_PREFIX), table.get("catalogue", [])
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix) or prefix == OWN_PREFIX:
        expected = f"expected 2 to 10 capital letters and digits such as 'ACME', not {OWN_PREFIX!r}"
        raise ReprosError(f"{file}: prefix = {prefix!r} in [tool.repros]; {expected}.")
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ReprosError(f"{file}: catalogue = {names!r} in [tool.repros]; expected a list of folders or scripts.")
    return Settings(prefix, _places(f"{file}: catalogue in [tool.repros]", file.parent, names))


def _places(source: str, base: Path, names: Sequence[str]) -> tuple[Path, ...]:
    places = [base / Path(name).expanduser() for name in names]
    for place in places:
        if not place.exists():
            raise ReprosError(f"{source} names {place}, which does not exist; make the folder, or correct the name.")
    return tuple(places)
