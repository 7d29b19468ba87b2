"""The package's catalogue for tests, and the index of its signatures, which a process makes once.

A load takes a quarter of a second, and an index, which a search makes of a catalogue, a tenth.
"""

from __future__ import annotations

from functools import cache

from repros.diagnose.match import SignatureIndex
from repros.engine import catalogue
from repros.model.catalogue import Catalogue


@cache
def load() -> Catalogue:
    """Return the catalogue, whose values are frozen."""
    return catalogue.load()


@cache
def load_index() -> SignatureIndex:
    """Return the index of the catalogue's signatures."""
    return SignatureIndex(load())
