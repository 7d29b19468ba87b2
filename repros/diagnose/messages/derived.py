"""What follows from the numbers and names of a message: further words for the texts of its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Words = dict[str, str]
"""Named groups of a message and what was derived from them."""

_DERIVED: Mapping[str, Callable[[Words, str], Words]] = {}
"""By the family's name: a function of the groups and the whole message."""


def derive(family: str, groups: Words, message: str) -> Words:
    """Return the groups of a message with what follows from them."""
    derived = _DERIVED.get(family)
    return {**groups, **derived(groups, message)} if derived else groups
