"""Where the simulated accelerator does not do what the table says, and why: a line that does it must go from here."""

from __future__ import annotations

DIFFERENCES: dict[str, str] = {}
"""Reasons by the names of lines."""
