"""An entry of the list of known differences."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """An operator, or one form of it, that differs."""

    operator: str
    """Its name in `op_db`, followed by a dot and its variant if it has one."""
    reason: str
    dtypes: frozenset[str] = frozenset()
    """Names of element types; empty: all."""
    forms: frozenset[str] = frozenset()
    """Names of forms; empty: all."""
    versions: tuple[str, ...] = ()
    """Prefixes of torch versions (`2.1.`); empty: all."""
    against: str = "cpu"
    """The reference's name."""

    def covers(self, operator: str, dtype: str, form: str) -> bool:
        """Return whether this entry applies to a combination."""
        own = operator == self.operator and (not self.dtypes or dtype in self.dtypes)
        return own and (not self.forms or form in self.forms)
