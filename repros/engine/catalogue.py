"""The catalogue: load every repro script below a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.engine.header import has_header, read
from repros.model.catalogue import Catalogue
from repros.model.repro import Repro
from repros.model.settings import CATALOGUE, PACKAGE, CatalogueLocations


def load(files: Iterable[Path] = (CATALOGUE,), locations: CatalogueLocations = PACKAGE) -> Catalogue:
    """Load every repro script at or below the given files and folders, which are those in use or some of them.

    Of two scripts with one id the first is loaded. The other is left out and named in `clashes`, so that it does not
    stop what is not about it.

    Raises:
        HeaderError: a header is invalid.
    """
    by_id: dict[str, Repro] = {}
    clashes = []
    for path in _scripts(files):
        repro = read(path, locations)
        if other := by_id.get(repro.id):
            clashes.append(
                f"{path}:{_line_of_id(path)}: id {repro.id} is also that of {other.path}; this script is left out, "
                f"give one of the two another id"
            )
        else:
            by_id[repro.id] = repro
    return Catalogue(tuple(by_id[id_] for id_ in sorted(by_id)), tuple(clashes), locations)


def _scripts(locations: Iterable[Path]) -> Iterator[Path]:
    """Yield each repro script once: every given file, and every file with a header below a given folder."""
    resolved: set[Path] = set()
    for place in locations:
        for path in sorted(filter(has_header, place.rglob("*.py"))) if place.is_dir() else [place]:
            if path.resolve() not in resolved:
                resolved.add(path.resolve())
                yield path


def _line_of_id(path: Path) -> int:
    """Return the line on which a script claims its id."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith("# id")), 1)
