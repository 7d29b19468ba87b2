"""Loading of the catalogue: all repro scripts below given folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.engine.header import has_header, read
from repros.model.catalogue import Catalogue
from repros.model.repro import Repro
from repros.model.settings import CATALOGUE, PACKAGE, CatalogueLocations


def load(files: Iterable[Path] = (CATALOGUE,), locations: CatalogueLocations = PACKAGE) -> Catalogue:
    """Load every repro script at or below files and folders.

    Of two scripts with the same id the first is loaded. The other is skipped and reported in `clashes`, so it does not
    block commands on other repros.

    Args:
        files: files and folders, usually `locations.scripts` or a part of them.
        locations: the catalogues in use.

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


def _scripts(files: Iterable[Path]) -> Iterator[Path]:
    """Yield each repro script once: all given files, and all files with a header below given folders."""
    visited: set[Path] = set()
    for file_or_folder in files:
        is_folder = file_or_folder.is_dir()
        for path in sorted(filter(has_header, file_or_folder.rglob("*.py"))) if is_folder else [file_or_folder]:
            if path.resolve() not in visited:
                visited.add(path.resolve())
                yield path


def _line_of_id(path: Path) -> int:
    """Return the number of the line with the id in a script."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith("# id")), 1)
