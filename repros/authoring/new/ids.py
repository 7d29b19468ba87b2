"""Ids of new scripts.

A script of the package gets a provisional id, derived from its name so that branches do not collide. At the merge it
gets the next free id, which is final (`tools/number.py`). A private catalogue continues from its highest id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from repros.model.settings import OWN_PREFIX

FIRST_PROVISIONAL, LAST_PROVISIONAL = 5000, 8999
"""Range of provisional ids; tests use higher numbers."""


def is_provisional(id_: str) -> bool:
    """Return whether the merge replaces an id."""
    prefix, _, number = id_.partition("-")
    return prefix == OWN_PREFIX and int(number) >= FIRST_PROVISIONAL


def new_id(slug: str, taken: Collection[str], prefix: str = OWN_PREFIX) -> str:
    """Return the id of a new script: provisional in the package's catalogue, else the next free one."""
    if prefix != OWN_PREFIX:
        return next_id(taken, prefix)
    number = int.from_bytes(hashlib.sha256(slug.encode()).digest()[:8])
    span = LAST_PROVISIONAL - FIRST_PROVISIONAL + 1
    ids = (f"{prefix}-{FIRST_PROVISIONAL + (number + step) % span}" for step in range(span))
    return next(id_ for id_ in ids if id_ not in taken)


def next_id(taken: Collection[str], prefix: str = OWN_PREFIX) -> str:
    """Return the id after the highest of a prefix. Gaps are abandoned ids, which are never reused."""
    final = [id_.partition("-") for id_ in taken if not is_provisional(id_)]
    highest = max((int(number) for start, _, number in final if start == prefix), default=0)
    return f"{prefix}-{highest + 1:04d}"
