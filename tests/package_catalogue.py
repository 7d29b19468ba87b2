"""The package's catalogue for tests, which a process loads once: a load takes a quarter of a second."""

from __future__ import annotations

from functools import cache

from repros.engine import catalogue
from repros.model.catalogue import Catalogue


@cache
def load() -> Catalogue:
    """Return the catalogue, whose values are frozen."""
    return catalogue.load()
