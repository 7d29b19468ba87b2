"""The memory size of each device, from REPROS_SIM_MEMORY or the profile."""

from __future__ import annotations

import os
import re

from .errors import SimUnavailableError
from .profiles import chosen_profile

VARIABLE = "REPROS_SIM_MEMORY"
_POWERS = {"M": 20, "G": 30, "T": 40}


def parse_size(text: str) -> int | None:
    """Return the bytes of `24GB`, `512MB`, `80GiB`, and None for what is no size; a GPU's gigabyte is 2^30 bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MGT])i?B", text.strip(), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * 2 ** _POWERS[found[2].upper()])
    return size if 0 < size < 2**63 else None


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
