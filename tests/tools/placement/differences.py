"""The known differences between the simulated accelerator and the table; a line that agrees must be removed."""

from __future__ import annotations

DIFFERENCES: dict[str, str] = {}
"""Reasons by line name."""
