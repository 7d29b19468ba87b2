"""The declaration of a check, and the choice of checks by name."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """One kind of finding that a family may report."""

    name: str
    """The name in findings, in a header's `finds`, and in `--only` and `--skip`."""
    about: str
    """What has happened, in a clause."""
    fix: str = ""
    """What to do about it; empty if each documented failure with this finding has its own."""


def first_words(name: str) -> set[str]:
    """Return the names by which `--only` and `--skip` choose a check: its own, and each prefix of whole words.

    `eval_mode` is chosen by `eval` and by `eval_mode`.
    """
    words = name.split("_")
    return {"_".join(words[:end]) for end in range(1, len(words) + 1)}


def is_chosen(name: str, only: frozenset[str], skip: frozenset[str]) -> bool:
    """Return whether a check may report, by the names after `--only` (empty for all checks) and `--skip`."""
    names = first_words(name)
    return not (skip & names) and (not only or bool(only & names))
