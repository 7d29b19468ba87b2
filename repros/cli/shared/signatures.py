"""The indexes of the catalogue's signatures and words, cached for all commands that compare logs with them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from repros.cli.shared.inputs import keep, name_omissions, read_catalogue
from repros.diagnose.match import SignatureIndex, log
from repros.diagnose.match.hints import NAME
from repros.model.settings import CatalogueLocations

if TYPE_CHECKING:
    from repros.diagnose.messages.nearest import WordIndex

_CODE = Path(log.__file__).parent


def load_index(places: CatalogueLocations) -> SignatureIndex:
    """Return the index of catalogues, and report on stderr ignored scripts and stacks.

    Raises:
        ReprosError: there is no script.
        HeaderError: a script's header is refused.
    """
    index, clashes = keep("signatures", places, partial(_read_index, places), [_CODE, Path(__file__)], NAME)
    name_omissions(places, clashes, is_empty=index.is_empty)
    return index


def load_words(places: CatalogueLocations) -> WordIndex:
    """Return the index of the words of all documented messages."""
    from repros.diagnose.messages import nearest  # noqa: PLC0415 - a match needs none of it

    readers = [Path(nearest.__file__), Path(__file__)]
    return keep("words", places, lambda: nearest.WordIndex(read_catalogue(places)), readers)


def _read_index(places: CatalogueLocations) -> tuple[SignatureIndex, tuple[str, ...]]:
    """Return the index of the signatures, and a sentence for each script that was skipped."""
    catalogue = read_catalogue(places)
    return SignatureIndex(catalogue), catalogue.clashes
