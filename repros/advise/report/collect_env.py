"""The output of `torch.utils.collect_env` in the environment under test, which torch's bug form asks for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_MODULE = "torch.utils.collect_env"
_TIMEOUT = 60
"""Seconds. It took 3 s with torch 2.13; it runs `nvidia-smi`, `lscpu`, `pip` and `conda`, any of which may hang."""
_OPENING = "PyTorch version:"


def collect_env(python: Path, timeout: float = _TIMEOUT) -> tuple[str, str | None]:
    """Return the output of `python -m torch.utils.collect_env`, and the reason if it is empty.

    Args:
        python: the interpreter of the environment.
        timeout: in seconds.
    """
    try:
        process = subprocess.Popen(
            # Without warnings: `-m` warns that torch has already imported the module.
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
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return "", f"it timed out after {timeout:.0f} s"
        finally:
            # With its child processes, which may be the ones that hang.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    _, opening, rest = out.partition(_OPENING)
    if not opening:
        last = (err.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return "", f"it failed ({last})"
    return f"{opening}{rest}".strip(), None
