"""What a script uses of libraries, by its syntax tree: names, methods, keyword arguments, overridden methods.

The same extraction on a documented failure's script gives what its failing variant has, what its fix removes and what
its fix adds. A script that has the former and lacks the latter may have the failure.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from repros.engine.source import PROBLEMS, parse
from repros.model import Repro

_SAME = {"pytorch_lightning": "lightning", "lightning_fabric": "lightning"}
"""Packages with the code of another one."""
_COMMON = 0.12
"""A use by more than this share of the documented scripts says nothing about one of them."""
_FEWEST_RARE = 2
_WORD = re.compile(r"[A-Za-z_]{3,}")


@dataclass(frozen=True)
class FailureUses:
    """What the failing variant of one documented failure uses."""

    repro_id: str
    title: str
    context: frozenset[str]
    """The uses of the script with its failing variant."""
    named: frozenset[str]
    """Those of which the description of the failure has a word."""
    removed: frozenset[str]
    """The uses of the failing variant that its fix is without."""
    added: frozenset[str]
    """The uses of its fix that the failing variant is without."""


@dataclass(frozen=True)
class Resemblance:
    """A documented failure whose uses a script has."""

    uses: FailureUses
    rare: tuple[str, ...]
    """The uses that they share, the rarest first: few documented failures have them."""
    line: int
    """The line of the first of them in the script."""


def read_uses(source: str) -> dict[str, int]:
    """Return the uses of a script, each with its first line.

    Raises:
        SyntaxError: it is not Python.
        ValueError: the same.
    """
    return _uses_of(parse(source).body, {})


def failure_uses(repro: Repro) -> FailureUses | None:
    """Return what a documented failure's script uses; None if its variants are no functions or classes."""
    try:
        body = parse(repro.path.read_text(encoding="utf-8")).body
    except PROBLEMS:
        return None
    variants = {variant.name.casefold() for variant in repro.variants}
    definitions = {node.name.casefold(): node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if not {"failing", "fixed"} <= definitions.keys():
        return None
    names = _imported(body)
    words = set(_WORD.findall(f"{repro.title} {repro.doc}"))
    rest = [node for node in body if getattr(node, "name", "").casefold() not in variants]
    own = {f"def {definitions[name].name}" for name in ("failing", "fixed")}
    failing, fixed = (_uses_of([definitions[name]], names).keys() - own for name in ("failing", "fixed"))
    shared = _uses_of(rest, names).keys()
    context = frozenset(shared | failing)
    named = frozenset(
        use for use in context if words.issuperset(_WORD.findall(use.rpartition(":")[2].partition("=")[0]))
    )
    removed, added = failing - fixed - shared, fixed - failing - shared
    return FailureUses(repro.id, repro.title, context, named, frozenset(removed), frozenset(added))


def find_resemblances(uses: Mapping[str, int], failures: Sequence[FailureUses]) -> list[Resemblance]:
    """Return the documented failures that a script may have, by their uses; the closest first."""
    counts = Counter(use for failure in failures for use in failure.context)
    most = _COMMON * len(failures)
    found = []
    for failure in failures:
        if not (failure.removed or failure.added) or not failure.removed <= uses.keys() or failure.added & uses.keys():
            continue
        rare = sorted((use for use in failure.named if counts[use] <= most), key=lambda use: (counts[use], use))
        if len(rare) >= _FEWEST_RARE and uses.keys() >= set(rare):
            found.append(Resemblance(failure, tuple(rare), uses[rare[0]]))
    return sorted(found, key=lambda one: (-len(one.rare), one.uses.repro_id))


def _imported(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Return the names that imports anywhere in a body define, each with the path that it is short for."""
    names: dict[str, str] = {}
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or path] = path
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _uses_of(body: Sequence[ast.stmt], imported: Mapping[str, str]) -> dict[str, int]:
    """Return the uses in a body, each with its first line."""
    names = {**imported, **_imported(body)}
    uses: dict[str, int] = {}
    nodes = [inner for statement in body for inner in ast.walk(statement)]
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    inner = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            is_library = bool(_path(node, names))
            if (node in inner and is_library) or (node in called and not is_library):  # a part of a longer use
                continue
        for use in _uses_at(node, names):
            line = getattr(node, "lineno", 0)
            uses[use] = min(uses.get(use, line), line)
    return uses


def _uses_at(node: ast.AST, names: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id in names:
        yield from _library_name(names[node.id])
    elif isinstance(node, ast.Attribute):
        path = _path(node, names)
        yield from _library_name(path) if path else (f".{node.attr}",)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if isinstance(node.func, ast.Attribute) and not _path(node.func, names):
            yield f".{name}()"
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            stated = repr(value) if isinstance(value, bool | str) else ""
            if name and keyword.arg:
                yield f"{name}({keyword.arg}={stated})"
    elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
        yield f"def {node.name}"


def _path(node: ast.Attribute, names: Mapping[str, str]) -> str:
    """Return the path of an attribute of a module or an imported name; empty for other objects."""
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in names:
        return ""
    return ".".join([names[value.id], *reversed(parts)])


def _library_name(path: str) -> Iterator[str]:
    """Yield `torch:AdamW` for `torch.optim.AdamW`: a name is the same wherever its library exports it."""
    package, _, rest = path.partition(".")
    if rest:
        yield f"{_SAME.get(package, package)}:{rest.rpartition('.')[2]}"
