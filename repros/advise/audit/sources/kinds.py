"""The kinds of files with dependencies, recognised by name and, for other names and standard input, by content."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from repros.advise.audit.sources import listed

REQUIREMENTS = "requirements.read_requirements"
_LISTED, _CONDA_YAML = "listed.read_listed", "listed.read_conda_yaml"
_TABLES, _PYLOCK, _PYPROJECT = "package_tables.read_package_tables", "pylock.read_pylock", "pyproject.read_pyproject"

_NAMES = {
    "pyproject.toml": _PYPROJECT,
    "uv.lock": _TABLES,
    "poetry.lock": _TABLES,
    "pdm.lock": _TABLES,
    "pylock.toml": _PYLOCK,
    "pylock.*.toml": _PYLOCK,
    "environment*.y*ml": _CONDA_YAML,
}
"""For each pattern of file names, the module and the function that parses it; it is imported when needed."""
_CONTENTS = {
    listed.CONDA_LIST: _LISTED,
    listed.CONDA_EXPLICIT: _LISTED,
    listed.PIP_LIST: _LISTED,
    listed.CONDA_EXPORT: _LISTED,
    listed.CONDA_YAML: _CONDA_YAML,
    re.compile(r"^\[\[package\]\]", re.MULTILINE): _TABLES,
    re.compile(r"^\[\[packages\]\]", re.MULTILINE): _PYLOCK,
    re.compile(r"^\[(?:project|dependency-groups)\]", re.MULTILINE): _PYPROJECT,
}
"""For each pattern in a text, the same."""


def find_kind(name: str, text: str) -> str:
    """Return the module and the function that parses a file: by its name, else by its content; else as requirements."""
    by_name = (kind for pattern, kind in _NAMES.items() if fnmatchcase(name, pattern))
    by_content = (kind for pattern, kind in _CONTENTS.items() if pattern.search(text))
    return next(by_name, None) or next(by_content, REQUIREMENTS)
