"""What a user has who does not have this project."""

from __future__ import annotations

import os


def foreign_environ() -> dict[str, str]:
    """Return the environment variables of a user without this project."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV", "UV_"))
    }
