"""The known differences between the simulated accelerator and the table; a line that agrees must be removed."""

from __future__ import annotations

from typing import NamedTuple

DIFFERENCES: dict[str, str] = {}
"""Reasons by line name."""


class OtherWords(NamedTuple):
    """A line that both refuse, in different words."""

    until: tuple[int, int]
    """The first version in which the words are the same."""
    reason: str


OTHER_WORDS: dict[str, OtherWords] = {
    "cpu_sum_out_on_device": OtherWords(
        (2, 9),
        "CUDA's guard fails an internal assertion, and tells a line of its source; the device says what is wrong",
    ),
}
"""The refusals whose words differ, by line name; all others are compared word for word."""


def explanation(name: str, torch: tuple[int, int]) -> str:
    """Return why a line's outcome need not be CUDA's word for word; empty if it must be.

    Args:
        name: the line's name.
        torch: torch's version.
    """
    other = OTHER_WORDS.get(name)
    return DIFFERENCES.get(name) or (other.reason if other and other.until > torch else "")
