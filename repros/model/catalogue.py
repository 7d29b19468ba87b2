"""The catalogue: all repros, found by id or slug."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from repros.model.errors import ReprosError, UnknownNameError
from repros.model.repro import Repro
from repros.model.settings import PACKAGE, CatalogueLocations

_ID = re.compile(r"([A-Z][A-Z0-9]*?)?[-_]?0*([0-9]+)")
"""Prefix and number of an id; users may omit the prefix, the hyphen and leading zeros."""
_REMEDY = "'repros list' shows all, and 'repros list WORD' those with a word."


@dataclass(frozen=True)
class Catalogue:
    """Repros in the order of their ids."""

    repros: tuple[Repro, ...]
    clashes: tuple[str, ...] = ()
    """One sentence for each script that was skipped because its id is taken."""
    locations: CatalogueLocations = PACKAGE
    """The catalogues that it was loaded from; their folders also hold evidence, stacks and golden logs."""

    def __iter__(self) -> Iterator[Repro]:
        """Iterate in the order of ids."""
        return iter(self.repros)

    def find(self, name: str) -> Repro:
        """Return the repro with that id (`RPR-0022`, `rpr-22`, `22`) or slug.

        Raises:
            UnknownNameError: no repro has that id or slug; the message names the nearest slug.
            ReprosError: several repros have that slug or number; two catalogues may share them.
        """
        parsed = _ID.fullmatch(name.upper())
        matches = [repro for repro in self.repros if name == repro.slug or (parsed and _is_of(repro, *parsed.groups()))]
        if len(matches) > 1:
            raise ReprosError(
                f"{name} is the name of {', '.join(repro.id for repro in matches)}; choose one by its id."
            )
        if matches:
            return matches[0]
        # Numerically close ids are not related, so none is suggested.
        raise UnknownNameError("repro", name, [] if parsed else [repro.slug for repro in self], _REMEDY)


def _is_of(repro: Repro, prefix: str | None, number: str) -> bool:
    """Return whether a number, and a prefix unless it is None, are those of a repro's id."""
    own_prefix, _, own_number = repro.id.rpartition("-")
    return number == own_number.lstrip("0") and prefix in {None, own_prefix}
