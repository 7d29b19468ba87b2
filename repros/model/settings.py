"""A project's settings: private catalogues with their evidence, stacks and golden logs, and the environments' builds.

A private catalogue is a folder of scripts with subfolders `evidence`, `stacks` and `golden`; its data is never written
into the package. A project configures its catalogues in `pyproject.toml`:

    [tool.repros]
    prefix = "ACME"
    catalogue = ["failures"]
    torch-build = "cuda"
    unused-days = 30

The environment variable `REPROS_CATALOGUE` takes precedence over `pyproject.toml`. Both add to the package's own
catalogue; the option `--catalogue` replaces all of them. A `pyproject.toml` that another user owns is ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repros.model.errors import ReprosError

_DATA = Path(__file__).parents[1]
CATALOGUE = _DATA / "catalogue"
"""The package's own catalogue."""
EVIDENCE, STACKS = _DATA / "evidence", _DATA / "stacks"
"""The package's own measurements, and its stacks with their locks."""
VARIABLE = "REPROS_CATALOGUE"
"""Environment variable with the paths of private catalogues, separated as in `PATH`."""
OWN_PREFIX, DEFAULT_PREFIX = "RPR", "LOCAL"
"""Id prefix of the package, and the default prefix of private catalogues."""

_PREFIX = re.compile(r"[A-Z][A-Z0-9]{1,9}")
_LARGEST = 2**20
"""Maximum characters read of a `pyproject.toml`, since a device file has no end."""
TORCH_BUILD, UNUSED_DAYS = "torch-build", "unused-days"
"""Keys about the environments of stacks."""
_KEYS = ("prefix", "catalogue", TORCH_BUILD, UNUSED_DAYS, "audit", "check")
_TORCH_BUILDS = ("auto", "cpu", "cuda")
_DATA_FOLDERS = ("evidence", "stacks", "golden")
"""Folders of a catalogue that hold its data."""


@dataclass(frozen=True)
class Settings:
    """A project's settings for its private catalogues, and for the environments of stacks."""

    prefix: str = DEFAULT_PREFIX
    """Prefix of new ids: `ACME` for `ACME-0001`."""
    catalogue: tuple[Path, ...] = ()
    """Files and folders, absolute."""
    torch_build: str = "auto"
    """`cpu` or `cuda` for the stacks, whatever this machine has; `auto` for the machine's."""
    unused_days: int = 30
    """Days without use after which `repros stacks --clean` drops an environment."""


@dataclass(frozen=True)
class Origin:
    """The catalogue of a script."""

    folder: Path | None = None
    """Folder of the private catalogue; None for the package's own."""
    option: Path | None = None
    """The value of `--catalogue` with which a command finds the script; None if not needed."""

    @property
    def words(self) -> tuple[str, ...]:
        """Arguments for a printed command to find the script: `--catalogue PATH`, or none."""
        if self.option is None:
            return ()
        near = self.option.absolute().is_relative_to(Path.cwd())
        return ("--catalogue", os.path.relpath(self.option) if near else str(self.option))


OWN = Origin()
"""The package's own catalogue."""


@dataclass(frozen=True)
class CatalogueLocations:
    """The locations of the catalogues in use, by default only the package's own, and the builds of their stacks."""

    from_option: tuple[Path, ...] = ()
    """Files and folders from the option `--catalogue`; they replace all others."""
    from_settings: tuple[Path, ...] = ()
    """Files and folders from the settings; they add to the package's own catalogue."""
    torch_build: str = "auto"
    """The project's setting for the environments of stacks; see :class:`Settings`."""

    @property
    def scripts(self) -> tuple[Path, ...]:
        """Files and folders of the scripts in use."""
        return self.from_option or (CATALOGUE, *self.from_settings)

    @property
    def private_folders(self) -> tuple[Path, ...]:
        """Folders of the private catalogues."""
        locations = self.from_option or self.from_settings
        return tuple(dict.fromkeys(_folder(location) for location in locations if not _is_own(location)))

    def origin_of(self, script: Path) -> Origin:
        """Return the catalogue of a script."""
        if _is_own(script):
            return OWN
        resolved = script.resolve()
        holding = [folder for folder in self.private_folders if resolved.is_relative_to(folder.resolve())]
        # The innermost of nested folders; a script outside all of them forms a catalogue with its folder.
        folder = max(holding, key=lambda folder: len(folder.parts)) if holding else _folder(script)
        if any(resolved.is_relative_to(location.resolve()) for location in self.from_settings):
            return Origin(folder)
        matching = [location for location in self.from_option if resolved.is_relative_to(location.resolve())]
        return Origin(folder, matching[0] if matching else script)


PACKAGE = CatalogueLocations()
"""Only the package's own catalogue."""


def find_catalogues(from_option: Iterable[Path] = (), folder: Path | None = None) -> CatalogueLocations:
    """Return the locations of the catalogues in use.

    Args:
        from_option: files and folders from the option `--catalogue`.
        folder: the folder whose project settings apply; by default the working directory.

    Raises:
        ReprosError: a wrong value in `[tool.repros]`, or a path that does not exist.
    """
    settings = read_settings(folder)
    return CatalogueLocations(tuple(from_option), settings.catalogue, settings.torch_build)


def read_settings(folder: Path | None = None) -> Settings:
    """Return the settings of the project that contains a folder, by default the working directory.

    Raises:
        ReprosError: a wrong value in `[tool.repros]`, or a path that does not exist.
    """
    folder, variable = (folder or Path.cwd()).absolute(), os.environ.get(VARIABLE, "")
    file, table = find_table(folder)
    settings = _parse_settings(file, table) if file is not None and may_decide(file, folder) else Settings()
    if not variable:
        return settings
    names = [name for name in variable.split(os.pathsep) if name]
    return replace(settings, catalogue=_locations(VARIABLE, Path.cwd(), names))


def foreign_settings(folder: Path | None = None) -> Path | None:
    """Return the settings file that is ignored because another user owns it; None if there is none."""
    folder = (folder or Path.cwd()).absolute()
    file, _ = find_table(folder)
    return None if file is None or may_decide(file, folder) else file


def may_decide(path: Path, folder: Path) -> bool:
    """Return whether a file or folder in a parent of `folder` is trusted.

    Its owner must be the user, root, or the owner of `folder`. In `/tmp` and on a shared disk anybody can create a
    file in a parent folder; git refuses a repository of another owner for the same reason.
    """
    trusted = {os.geteuid(), 0}
    with contextlib.suppress(OSError):
        trusted.add(folder.stat().st_uid)
    # The owner of a symbolic link chooses its target.
    return {path.stat().st_uid, path.lstat().st_uid} <= trusted


def is_own_file(file: Path) -> bool:
    """Return whether a file belongs to the current user or root, as does the link that names it.

    Stricter than :func:`may_decide`, for files with commands to run.
    """
    return {file.stat().st_uid, file.lstat().st_uid} <= {os.geteuid(), 0}


def find_checkout() -> Path | None:
    """Return the root of the checkout that the package is imported from; None where it is installed from a wheel."""
    root = _DATA.parent
    return root if (root / "pyproject.toml").is_file() else None


def find_table(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest `pyproject.toml` with a table `[tool.repros]`, in a folder or above it, and the table."""
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file() and (table := _read_table(file)) is not None:
            return file, table
    return None, {}


def _is_own(path: Path) -> bool:
    return path.resolve().is_relative_to(CATALOGUE)


def _folder(location: Path) -> Path:
    """Return the catalogue folder of a location: for a file, the nearest parent that has data folders."""
    if location.is_dir():
        return location
    own = location.absolute().parent
    for parent in (own, *own.parents):
        data_folders = [parent / name for name in _DATA_FOLDERS if (parent / name).is_dir()]
        if any(may_decide(folder, own) for folder in data_folders):
            return parent
    return own


def _read_table(file: Path) -> dict[str, Any] | None:
    """Return the table `[tool.repros]`; None if the file has none or is not valid TOML."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_LARGEST)
    except (OSError, UnicodeDecodeError):
        return None
    if "repros" not in text:
        return None
    import tomllib  # noqa: PLC0415 - most projects have no settings, and its import takes as long as a short command

    try:
        table = tomllib.loads(text).get("tool", {}).get("repros")
    except (AttributeError, RecursionError, tomllib.TOMLDecodeError):
        # Commands that read the file itself report the error, such as `repros audit`.
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
    build, days = table.get(TORCH_BUILD, "auto"), table.get(UNUSED_DAYS, Settings.unused_days)
    if build not in _TORCH_BUILDS:
        raise ReprosError(f"{file}: {TORCH_BUILD} = {build!r} in [tool.repros]; expected {_one_of(_TORCH_BUILDS)}.")
    if not isinstance(days, int) or isinstance(days, bool) or days < 0:
        raise ReprosError(f"{file}: {UNUSED_DAYS} = {days!r} in [tool.repros]; expected a number of days such as 30.")
    return Settings(prefix, _locations(f"{file}: catalogue in [tool.repros]", file.parent, names), build, days)


def _one_of(words: Sequence[str]) -> str:
    """Return `'auto', 'cpu' or 'cuda'`."""
    quoted = [repr(word) for word in words]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _locations(source: str, base: Path, names: Sequence[str]) -> tuple[Path, ...]:
    locations = [base / Path(name).expanduser() for name in names]
    for location in locations:
        if not location.exists():
            raise ReprosError(f"{source} names {location}, which does not exist; make the folder, or correct the name.")
    return tuple(locations)
