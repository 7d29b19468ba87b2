"""The checks: one family in each file, whose docstring says when it speaks and when it keeps silent.

A family's `CHECKS` declares the names that its findings may have. The process outside reads the declarations as well
(`repros/diagnose/watch/names.py`), so no module of this folder imports torch as it is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

FAMILIES = (
    *("gradients", "precision", "share", "reaches", "cut", "effect", "moved", "used", "wasted", "scaled", "remade"),
    *("mode", "state", "restored", "rate", "schedule", "order"),
    *("repeated", "alike", "losses", "loading", "evaluated"),
    *("stream", "loop", "checkpoint", "kept", "average", "copies", "hooks", "collectives", "waiting"),
    *("switched", "changed"),
    *("collated", "tokenized", "scored", "resumed"),
    *("accumulated", "gathered", "prepared", "rows"),
    "nan",
    *("adapted", "carried", "merged", "fresh", "referred"),
)
"""The modules of this folder, each with `CHECKS` and a function `listen(watch)`, in the order of the documentation."""


class Check(NamedTuple):
    """One thing that a family may find."""

    name: str
    """What a finding, a header's `finds`, `--only` and `--skip` call it."""
    about: str
    """What has happened then, in a clause."""


def families() -> Iterator[Any]:
    """Yield the module of each family."""
    for name in FAMILIES:
        yield importlib.import_module(f"{__name__}.{name}")


def first_words(name: str) -> set[str]:
    """Return the names that stand for a check in `--only` and `--skip`: its own, and the first words of it."""
    words = name.split("_")
    return {"_".join(words[:end]) for end in range(1, len(words) + 1)}


def is_chosen(name: str, only: frozenset[str], skip: frozenset[str]) -> bool:
    """Return whether a check may speak, by the names after `--only` and `--skip`."""
    names = first_words(name)
    return not (skip & names) and (not only or bool(only & names))
