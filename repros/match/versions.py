"""Versions that a log tells: pip's and conda's lists, bug forms, `collect_env`, an installer's last line.

Only what states a version counts. `torch>=2.0` and "needs torch 2.1 or newer" are about versions and state none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_ALIASES = {"pytorch": "torch", "pytorch-lightning": "lightning"}
"""Other names of a package with the same versions: `lightning` and `pytorch-lightning` are built from one source."""

_VERSION = re.compile(r"[vV]?(?P<version>\d{1,4}(?:\.\d{1,6}){1,3}[\w.+]{0,40})(?P<after>[^\n]{0,1})")
_PYTHON_PATH = re.compile(r"/python(?P<version>3\.\d{1,2})/(?:site|dist)-packages/")

# What may stand between a name and its version.
_BETWEEN = re.compile(
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
_MOST_BETWEEN = 60
_COMPARED = re.compile(r"[=!<>~]=|[<>~]")


def versions(lines: Iterable[tuple[int, str]], packages: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the versions stated of these packages, each as often as it differs, the most exact way of saying it.

    Args:
        lines: the log.
        packages: canonical names; `python` may be among them.
    """
    names = _Names(packages)
    told: dict[str, dict[str, None]] = {}
    paths: dict[str, None] = {}
    for _, text in lines:
        for name, version in names.stated(text):
            told.setdefault(name, {})[version] = None
        if "/python3." in text and (path := _PYTHON_PATH.search(text)):
            paths[path["version"]] = None
    for alias, name in _ALIASES.items():
        if stated := told.pop(alias, None):
            told.setdefault(name, stated)  # what is said of the name itself is to be preferred
    if "python" in packages and "python" not in told and paths:
        told["python"] = paths
    return {name: _exact(stated) for name, stated in told.items() if name in packages}


class _Names:
    """Finds the names of packages in a line."""

    def __init__(self, packages: Collection[str]) -> None:
        aliases = [alias for alias, name in _ALIASES.items() if name in packages]
        self._names = {*packages, *aliases}
        spelled = sorted((re.escape(name).replace("\\-", "[-_ .]") for name in self._names), key=len, reverse=True)
        # Not within a path, an attribute or a longer name.
        self._pattern = re.compile(rf"(?<![\w./@-])(?:{'|'.join(spelled)})(?![\w/])", re.IGNORECASE)

    def stated(self, text: str) -> Iterator[tuple[str, str]]:
        if not self._names:
            return
        for found in self._pattern.finditer(text):
            version = _following(text, found.end())
            if version:
                name = canonicalize_name(found[0].replace(" ", "-"))
                yield name, version


def _following(text: str, at: int) -> str | None:
    """Return the version that is stated at this place."""
    end, start = min(len(text), at + _MOST_BETWEEN), at
    while at < end and (between := _BETWEEN.match(text, at, end + 40)):
        at = between.end()
    separated = text[start:at]
    version = _VERSION.match(text, at)
    if version is None or not separated or (_COMPARED.search(separated) and "==" not in separated):
        return None
    stated = version["version"].rstrip(".")
    try:
        return str(Version(stated))
    except InvalidVersion:
        # A wheel's or an installer's `torch-2.1.2+cu118-cp310` ends at the hyphen, which the expression does not take.
        return None


def _exact(stated: Iterable[str]) -> tuple[str, ...]:
    """Leave out what another one says more exactly: 2.1 beside 2.1.2."""
    known = list(stated)
    return tuple(one for one in known if not any(other.startswith((f"{one}.", f"{one}+")) for other in known))
