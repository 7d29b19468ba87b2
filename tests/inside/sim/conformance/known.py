"""What the simulated accelerator does not do as the CPU does, and why.

An entry that passes has to leave: the run fails as long as it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Known(NamedTuple):
    """An operator, or one way of calling it, that differs."""

    operator: str
    """Its name in `op_db`, with its variant behind a dot where it has one."""
    reason: str
    dtypes: frozenset[str] = frozenset()
    """Names of element types; empty: all."""
    forms: frozenset[str] = frozenset()
    """Names of forms; empty: all."""
    versions: tuple[str, ...] = ()
    """Beginnings of torch versions (`2.1.`); empty: all."""

    def covers(self, operator: str, dtype: str, form: str) -> bool:
        """Whether a combination is what this entry speaks of."""
        own = operator == self.operator and (not self.dtypes or dtype in self.dtypes)
        return own and (not self.forms or form in self.forms)


KNOWN: tuple[Known, ...] = ()


def of_version(version: str, entries: Iterable[Known] = KNOWN) -> list[Known]:
    """The entries that speak of a torch version."""
    return [entry for entry in entries if not entry.versions or version.startswith(entry.versions)]
