"""Bytecode: processes in an environment that is not this project's own write none into it."""

from __future__ import annotations

import os


def write_no_bytecode() -> None:
    """Let the processes that are started from now on write no `__pycache__`, whatever the user has set.

    Python would write one beside each module that it imports for the first time: into the user's environment, in which
    nothing may change. What is compiled there already is still read.
    """
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
