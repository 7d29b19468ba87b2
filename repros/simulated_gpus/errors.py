"""The error raised where the simulated GPUs are not available."""

from __future__ import annotations


class SimUnavailableError(RuntimeError):
    """The simulated accelerator cannot be built here; the message is one sentence with the reason and the remedy."""
