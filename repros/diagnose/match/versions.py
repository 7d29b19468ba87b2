"""Find package versions in a log: lists of pip and conda, bug forms, `collect_env`, the last line of an installer.

Only statements of an installed version count. `torch>=2.0` and "needs torch 2.1 or newer" are requirements.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from repros.model.packages import canonical_name, distributions_of

if TYPE_CHECKING:
    from repros.model import Environment

_VERSION = re.compile(r"[vV]?(?P<version>\d{1,4}(?:\.\d{1,6}){1,3}[\w.+]{0,40})")
_PYTHON_PATH = re.compile(r"/python(?P<version>3\.\d{1,2})/(?:site|dist)-packages/")

# The text between a name and its version.
_SEPARATOR = re.compile(
    r"""
      [ \t"'`:=|,@*-]
    | [ ]?\((?:e\.g\.|i\.e\.|GPU\?)[^()\n]{0,40}\)
    | \((?=\d)
    | (?:version|Version|__version__|VERSION)\b
    | \.(?=__version__)
    | is\b
    """,
    re.VERBOSE,
)
_LONGEST_SEPARATOR = 60
_MOST_STATED = 50
"""Versions kept of one package; the log of one program states one or two."""
_COMPARISON = re.compile(r"[=!<>~]=|[<>~]")


def find_versions(lines: Iterable[tuple[int, str]], packages: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the versions that a log states, by package; several of one package are in the order of the log.

    Args:
        lines: the log.
        packages: canonical names; `python` may be one of them.
    """
    finder = _finder(frozenset(packages))
    by_name: dict[str, dict[str, None]] = {}
    paths: dict[str, None] = {}
    for _, text in lines:
        for name, version in finder.find(text):
            stated = by_name.setdefault(name, {})
            if len(stated) < _MOST_STATED:
                stated[version] = None
        if "/python3." in text and (path := _PYTHON_PATH.search(text)):
            paths[path["version"]] = None
    if "python" not in by_name and paths:
        by_name["python"] = paths
    versions = {}
    for package in sorted(packages):
        # A version stated for the package's own name takes precedence over one of its other names.
        if known := next((by_name[name] for name in distributions_of(package) if name in by_name), None):
            versions[package] = _most_exact(known)
    return versions


def installed_versions(environment: Environment, packages: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the versions of an environment, by package."""
    installed = {**environment.versions, "python": environment.python_version}
    names = {package: [name for name in distributions_of(package) if name in installed] for package in packages}
    return {package: (installed[found[0]],) for package, found in sorted(names.items()) if found}


_LIBRARY_SENTENCE = re.compile(r"In PyTorch \d\.\d+, we changed")
"""A sentence of torch's own message (torch/serialization.py, `_get_wo_message`), which later releases print too."""


@lru_cache(maxsize=16)
def _finder(packages: frozenset[str]) -> _VersionFinder:
    """Return the search for packages; the parts of an issue are searched for the same ones."""
    return _VersionFinder(packages)


class _VersionFinder:
    """A search for package names that a version follows."""

    def __init__(self, packages: Collection[str]) -> None:
        self._names = {name for package in packages for name in distributions_of(package)}
        names = sorted(self._names, key=lambda name: (-len(name), name))  # the same expression in each process
        spellings = [re.escape(name).replace("\\-", "[-_ .]") for name in names]
        # Not within a path, an attribute or a longer name.
        self._pattern = re.compile(rf"(?<![\w./@-])(?:{'|'.join(spellings)})(?![\w/])", re.IGNORECASE)
        words = {name.partition("-")[0] for name in self._names}
        self._words = [word for word in words if not any(other in word for other in words - {word})]
        """Each name contains one of these, whose search takes a fourth of the pattern's time."""

    def find(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the canonical name and the version of each package stated in the line."""
        lower = text.lower()
        if not any(word in lower for word in self._words) or _LIBRARY_SENTENCE.search(text):
            return
        for name in self._pattern.finditer(text):
            if version := _version_at(text, name.end()):
                yield canonical_name(name[0].replace(" ", "-")), version


def _version_at(text: str, at: int) -> str | None:
    """Return the version that follows a name ending at this position."""
    end, start = min(len(text), at + _LONGEST_SEPARATOR), at
    while at < end and (part := _SEPARATOR.match(text, at, end + 40)):
        at = part.end()
    separator = text[start:at]
    version = _VERSION.match(text, at)
    if version is None or not separator or (_COMPARISON.search(separator) and "==" not in separator):
        return None
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - many logs state no version

    try:
        return str(Version(version["version"].rstrip(".")))
    except InvalidVersion:  # such as the 2.1.x of `torch == 2.1.x`
        return None


def _most_exact(versions: Iterable[str]) -> tuple[str, ...]:
    """Drop each version of which another is a more exact form: 2.1 if there is 2.1.2."""
    known = list(versions)
    return tuple(
        version for version in known if not any(other.startswith((f"{version}.", f"{version}+")) for other in known)
    )
