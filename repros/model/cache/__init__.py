"""The cache folder: the one place for everything that can be made again."""

from __future__ import annotations

import os
from pathlib import Path

from repros.model.errors import ReprosError

VARIABLE = "REPROS_CACHE_DIR"
"""Environment variable that names the folder; `~` and relative paths are allowed."""


def cache_folder() -> Path:
    """Return the cache folder, absolute: `REPROS_CACHE_DIR`, or the platform's cache folder for users.

    Processes under test get the result in the same variable, so that the simulated accelerator, which runs in another
    working directory, uses the same folder.

    Raises:
        ReprosError: the variable names no folder.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        import platformdirs  # noqa: PLC0415 # a machine with only a training stack lacks it, and names the folder

        return platformdirs.user_cache_path("repros")
    try:
        return Path(chosen).expanduser().absolute()
    except (RuntimeError, OSError) as error:  # no such user; no working directory any more
        raise ReprosError(f"{VARIABLE}={chosen!r} names no folder ({error}); expected a path.") from error
