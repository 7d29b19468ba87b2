"""The catalogue: load every repro script below a folder, and find one by its id or slug."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from repros.engine.header import HeaderError, has_header, read
from repros.errors import UnknownNameError
from repros.model import Repro

CATALOGUE = Path(__file__).parents[1] / "catalogue"
"""The catalogue that comes with the package."""


@dataclass(frozen=True)
class Catalogue:
    """Repros in the order of their ids."""

    repros: tuple[Repro, ...]

    def __iter__(self) -> Iterator[Repro]:
        """Iterate in the order of ids."""
        return iter(self.repros)

    def find(self, name: str) -> Repro:
        """Return the repro with that id (any case) or slug.

        Raises:
            UnknownNameError: no repro has that id or slug; the message names the nearest.
        """
        for repro in self.repros:
            if name.upper() == repro.id or name == repro.slug:
                return repro
        raise UnknownNameError("repro", name, [r.id for r in self] + [r.slug for r in self])


def load(places: Iterable[Path] = (CATALOGUE,)) -> Catalogue:
    """Load every repro script at or below the given files and folders.

    Raises:
        HeaderError: a header is invalid, or two scripts claim the same id.
    """
    taken: dict[str, Repro] = {}
    for path in _scripts(places):
        repro = read(path)
        if repro.id in taken:
            problem = f"id {repro.id} is taken by {taken[repro.id].path}; expected one that no other script has"
            raise HeaderError(path, _line_of_id(path), problem)
        taken[repro.id] = repro
    return Catalogue(tuple(taken[id_] for id_ in sorted(taken)))


def _scripts(places: Iterable[Path]) -> Iterator[Path]:
    """Yield each repro script once: every given file, and every file with a header below a given folder."""
    seen: set[Path] = set()
    for place in places:
        for path in sorted(filter(has_header, place.rglob("*.py"))) if place.is_dir() else [place]:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def _line_of_id(path: Path) -> int:
    """Return the line on which a script claims its id."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith("# id")), 1)
