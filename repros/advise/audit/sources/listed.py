"""Parsers of what conda and pip print: `conda list`, with and without `--export`, `conda env export`, `pip list`.

conda names torch `pytorch`; a subject finds it under both names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from repros.advise.audit.sources.parsing import (
    exact_constraint,
    group_by_package,
    is_excessive,
    quote,
    range_constraint,
    read_text,
)
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model.errors import ReprosError

CONDA_LIST = re.compile(r"^# packages in environment at |^# Name\s+Version\s+Build", re.MULTILINE)
CONDA_EXPORT = re.compile(r"^(?!.*==)[A-Za-z0-9_][\w.-]*=[^=<>!~\s]+=[^=\s]+$", re.MULTILINE)
CONDA_YAML = re.compile(r"^dependencies:\s*$", re.MULTILINE)
CONDA_EXPLICIT = re.compile(r"^@EXPLICIT\b", re.MULTILINE)
PIP_LIST = re.compile(r"^Package\s+Version\b.*\n-+ +-+", re.MULTILINE)
_NAME = r"[A-Za-z0-9_][\w.-]*"
_ROW = re.compile(rf"^(?P<name>{_NAME})\s+(?P<version>\d[\w.!+-]*)(?=\s|$)")
_EXPORTED = re.compile(rf"^(?P<name>{_NAME})=(?P<version>[^=\s]+)=[^=\s]+$")
_ITEM = re.compile(r"""^(?P<indent> *)- +(?P<quote>["']?)(?P<text>[^"'#]+?)(?P=quote)\s*(?:#.*)?$""")
_BOUND = r"[=<>!~]=?[^\s=,]+"
_CONDA_SPEC = re.compile(
    rf"^(?:[\w./-]+::)?(?P<name>{_NAME})\s*(?:\[.*\])?\s*(?P<range>{_BOUND}(?:,{_BOUND})*)?(?:=(?P<build>[^\s=]+))?$"
)


def read_listed(file: Path) -> Subject:
    """Parse a list that conda or pip printed; all its packages are installed, and no others.

    Raises:
        ReprosError: it is conda's explicit list, or has no package.
    """
    text = read_text(file)
    if CONDA_EXPLICIT.search(text):
        raise ReprosError(f"{file} is an explicit list of conda's files; expected the output of 'conda list'.")
    pattern = _ROW if CONDA_LIST.search(text) or PIP_LIST.search(text) else _EXPORTED
    rows = ((number, pattern.match(line.strip())) for number, line in enumerate(text.split("\n"), 1))
    found = [(row["name"], exact_constraint(row["version"], Location(str(file), line))) for line, row in rows if row]
    if not found:
        raise ReprosError(f"{file} is a list without a package; expected the output of 'conda list' or 'pip list'.")
    return Subject(str(file), group_by_package(found), complete=True)


def read_conda_yaml(file: Path) -> Subject:
    """Parse the `dependencies` of an `environment.yml`, with those of pip.

    Raises:
        ReprosError: it has none.
    """
    text = read_text(file)
    if not CONDA_YAML.search(text):
        raise ReprosError(f"{file} has no list 'dependencies'; expected an environment.yml of conda.")
    unparsed: list[str] = []
    constraints, are_exact = [], True
    for line, spec, is_pip in _items(text):
        location = Location(str(file), line)
        parsed = _parse(spec, location, is_pip=is_pip)
        if parsed is None:
            unparsed.append(f"{location}: {quote(spec)} is not a requirement")
            continue
        constraints.append(parsed)
        are_exact = are_exact and parsed[1].version is not None
    if not constraints:
        raise ReprosError(f"{file} has no package in its list 'dependencies'; expected an environment.yml of conda.")
    complete = are_exact and not unparsed
    return Subject(str(file), group_by_package(constraints), complete=complete, unparsed=tuple(unparsed))


def _items(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the text of each dependency, and whether it is one of pip's, which are indented further."""
    is_inside, outer = False, -1
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] not in {" ", "-", "#", ""}:
            is_inside, outer = CONDA_YAML.match(line) is not None, -1
        elif is_inside and is_excessive(line) and line.lstrip().startswith("-"):
            yield number, line.strip(), False
        elif is_inside and (item := _ITEM.match(line)):
            indent = len(item["indent"])
            outer = indent if outer < 0 else outer
            if item["text"].strip() not in {"pip:", "pip"}:
                yield number, item["text"].strip(), indent > outer


def _parse(spec: str, location: Location, *, is_pip: bool) -> tuple[str, Constraint] | None:
    """Return a dependency's name and constraint; None if it has another form, such as pip's `-r FILE`."""
    match = None if is_excessive(spec) else _CONDA_SPEC.match(spec)
    if match is None:
        return None
    bounds = match["range"] or ""
    if not is_pip and match["build"]:
        return match["name"], exact_constraint(bounds.lstrip("="), location)
    if not is_pip and re.match(r"=[^=]", bounds):  # conda's `=2.1` is any release of the series
        bounds = f"={bounds}" if bounds.endswith("*") else f"={bounds}.*"
    try:
        return match["name"], range_constraint(SpecifierSet(bounds), location)
    except InvalidSpecifier:
        return match["name"], Constraint(bounds, location)
