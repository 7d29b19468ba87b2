"""Exit codes of the commands that run cells, and of all commands for bad input."""

from __future__ import annotations

AGREES = 0
"""Every cell that was run agrees with its documentation."""
DISAGREES = 1
"""A cell disagrees, could not be judged or could not be recorded."""
BAD_INPUT = 2
"""The request cannot be met; one line on stderr states why."""
