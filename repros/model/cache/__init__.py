"""The cache folder: the only location of data that can be recomputed."""

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
        import platformdirs  # noqa: PLC0415 # machines with only a training stack lack it and set the variable

        return platformdirs.user_cache_path("repros")
    try:
        return Path(chosen).expanduser().absolute()
    except (RuntimeError, OSError) as error:  # no such user; no working directory any more
        raise ReprosError(f"{VARIABLE}={chosen!r} names no folder ({error}); expected a path.") from error
