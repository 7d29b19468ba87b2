"""Asks torch itself, in the environment under test, for the description that its bug form wants."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_MODULE = "torch.utils.collect_env"
_PATIENCE = 60
"""Seconds. It took 3 with torch 2.13; it asks `nvidia-smi`, `lscpu`, `pip` and `conda`, each of which may hang."""
_OPENING = "PyTorch version:"


def collect(python: Path, patience: float = _PATIENCE) -> tuple[str, str | None]:
    """Return what `python -m torch.utils.collect_env` says, and why there is nothing, if there is nothing.

    Args:
        python: the interpreter of the environment.
        patience: seconds that it may take.
    """
    try:
        process = subprocess.Popen(
            # Warnings off: `-m` warns that torch has imported the module already.
            [str(python), "-W", "ignore", "-m", _MODULE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
    except OSError as error:
        return "", f"the interpreter cannot be run ({error.strerror})"
    with process:
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            return "", f"it did not answer within {patience:.0f} s"
        finally:
            # Together with what it asked, which may be what hangs.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    _, opening, rest = out.partition(_OPENING)
    if not opening:
        last = (err.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return "", f"it failed ({last})"
    return f"{opening}{rest}".strip(), None
