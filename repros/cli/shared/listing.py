"""The listing: of each repro what a line of `repros list` shows, cached apart from the repros."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from repros.cli.shared.inputs import keep, name_omissions
from repros.model.settings import CATALOGUE, CatalogueLocations

_TEXT = Path(__file__).parents[2] / "text"
_NO_SCRIPTS = ("_", "conftest", "test_")
"""Prefixes of file names that are not scripts."""


class ListedRepro(NamedTuple):
    """One repro as text."""

    summary: dict[str, Any]
    """As `repros list --json` prints it."""
    note: str
    """The kind of a failure that is no bug, as in ` (by design)`."""
    affected: str
    """Its affected releases on one line."""
    searched: str
    """The text in which words are searched, in lower case."""

    def has_word(self, word: str) -> bool:
        """Whether it has a word, whatever its case; `weights_only` is also `weights only`."""
        word = word.casefold()
        return word in self.searched or word.replace("_", " ") in self.searched


class Listing(NamedTuple):
    """The repros of catalogues, in the order of their ids, and what was left out."""

    repros: tuple[ListedRepro, ...]
    clashes: tuple[str, ...]
    """One sentence for each script that was skipped because its id is taken."""
    without_header: tuple[Path, ...]
    """Python files in private catalogues that are no scripts, because they have no header."""


def load_listing(places: CatalogueLocations) -> Listing:
    """Return the listing of catalogues, and report on stderr ignored scripts and stacks.

    Raises:
        ReprosError: there is no script.
        HeaderError: a script's header is refused.
    """
    listing = keep("listing", places, partial(_read, places), [Path(__file__), _TEXT])
    name_omissions(places, listing.clashes, is_empty=not listing.repros)
    return listing


def _read(places: CatalogueLocations) -> Listing:
    from repros.cli.shared.inputs import read_catalogue  # noqa: PLC0415 - only what has changed is read
    from repros.model.affected import affected_text  # noqa: PLC0415 - the same
    from repros.text.json_values import repro_summary  # noqa: PLC0415 - the same
    from repros.text.threads import kind_note  # noqa: PLC0415 - the same

    catalogue = read_catalogue(places)
    repros = []
    for repro in catalogue:
        errors = [str(variant.signature) for variant in repro.variants]
        words = "\n".join([repro.id, repro.title, repro.slug, repro.family, *repro.packages, *errors]).casefold()
        affected = affected_text(repro.affected, repro.measurable)
        repros.append(ListedRepro(repro_summary(repro), kind_note(repro), affected, words))
    return Listing(tuple(repros), catalogue.clashes, tuple(_files_without_header(places)))


def _files_without_header(places: CatalogueLocations) -> list[Path]:
    from repros.engine.header import has_header  # noqa: PLC0415 - only what has changed is read

    private = [place for place in places.scripts if place.is_dir() and place != CATALOGUE]
    files = (file for folder in private for file in sorted(folder.rglob("*.py")))
    return [file for file in files if not file.name.startswith(_NO_SCRIPTS) and not has_header(file)]
