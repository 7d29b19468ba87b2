"""The catalogue: all repros, found by id or slug."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from repros.model.errors import ReprosError, UnknownNameError
from repros.model.repro import Repro
from repros.model.settings import PACKAGE, CatalogueLocations

_ID = re.compile(r"([A-Z][A-Z0-9]*?)?[-_]?0*([0-9]+)")
"""An id's prefix and its number; a user may leave out the prefix, the hyphen and the zeros."""
_REMEDY = "'repros list' shows all, and 'repros list WORD' those with a word."


@dataclass(frozen=True)
class Catalogue:
    """Repros in the order of their ids."""

    repros: tuple[Repro, ...]
    clashes: tuple[str, ...] = ()
    """A sentence for each script that was left out because another has its id."""
    places: CatalogueLocations = PACKAGE
    """The catalogues that it was loaded from; evidence, stacks and golden logs are beside them."""

    def __iter__(self) -> Iterator[Repro]:
        """Iterate in the order of ids."""
        return iter(self.repros)

    def find(self, name: str) -> Repro:
        """Return the repro with that id (`RPR-0022`, `rpr-22`, `22`) or slug.

        Raises:
            UnknownNameError: no repro has that id or slug; the message names the nearest slug.
            ReprosError: several have that slug or number, which two catalogues may have.
        """
        given = _ID.fullmatch(name.upper())
        found = [repro for repro in self.repros if name == repro.slug or (given and _is_of(repro, *given.groups()))]
        if len(found) > 1:
            raise ReprosError(f"{name} is the name of {', '.join(repro.id for repro in found)}; choose one by its id.")
        if found:
            return found[0]
        # The nearest number is no better than any other.
        raise UnknownNameError("repro", name, [] if given else [repro.slug for repro in self], _REMEDY)


def _is_of(repro: Repro, prefix: str | None, number: str) -> bool:
    """Return whether an id's number, and its prefix if it is given, are those of a repro."""
    own_prefix, _, own_number = repro.id.rpartition("-")
    return number == own_number.lstrip("0") and prefix in {None, own_prefix}
