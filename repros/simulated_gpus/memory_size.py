"""The memory size of each device, from REPROS_SIM_MEMORY or the profile."""

from __future__ import annotations

import os
import re

from .errors import SimUnavailableError
from .profiles import chosen_profile

VARIABLE = "REPROS_SIM_MEMORY"
_POWERS = {"M": 20, "G": 30, "T": 40}


def parse_size(text: str) -> int | None:
    """Return the bytes of `24GB`, `512MB`, `80GiB`; None if the text is not a size. A gigabyte is 2^30 bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MGT])i?B", text.strip(), re.IGNORECASE)
    size = 0.0 if match is None else float(match[1]) * 2 ** _POWERS[match[2].upper()]
    return int(size) if 1 <= size < 2**63 else None


def chosen_memory() -> int | None:
    """Return the bytes of each device; None for the machine's memory.

    Raises:
        SimUnavailableError: the variable is no size.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return chosen_profile().bytes
    size = int(text) if re.fullmatch(r"0*[1-9]\d{0,17}", text) else parse_size(text)
    if size is None:
        raise SimUnavailableError(f"{VARIABLE}={text} is no size; write it as 24GB or 512MB, or as a number of bytes")
    return size
