"""The catalogue: all repros, found by id or slug."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from repros.errors import ReprosError, UnknownNameError
from repros.model.repro import Repro
from repros.settings import PACKAGE, Places


@dataclass(frozen=True)
class Catalogue:
    """Repros in the order of their ids."""

    repros: tuple[Repro, ...]
    clashes: tuple[str, ...] = ()
    """A sentence for each script that was left out because another has its id."""
    places: Places = PACKAGE
    """The catalogues that it was loaded from; evidence, stacks and golden logs are beside them."""

    def __iter__(self) -> Iterator[Repro]:
        """Iterate in the order of ids."""
        return iter(self.repros)

    def find(self, name: str) -> Repro:
        """Return the repro with that id (any case) or slug.

        Raises:
            UnknownNameError: no repro has that id or slug; the message names the nearest.
            ReprosError: several have that slug, which two catalogues may have.
        """
        found = [repro for repro in self.repros if name.upper() == repro.id or name == repro.slug]
        if len(found) > 1:
            raise ReprosError(f"{name} is the name of {', '.join(repro.id for repro in found)}; choose one by its id.")
        if found:
            return found[0]
        raise UnknownNameError("repro", name, [r.id for r in self] + [r.slug for r in self])
