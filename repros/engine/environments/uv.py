"""Running uv with pip's settings, passing its progress on while it works."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from itertools import takewhile
from pathlib import Path

from repros.engine.environments.pip_settings import uv_settings
from repros.model.errors import ReprosError

ReportProgress = Callable[[str], None]
"""Receives one line of progress for the user."""

watch_uv: ContextVar[Callable[[subprocess.Popen[str]], AbstractContextManager[object]]] = ContextVar(
    "watch_uv", default=nullcontext
)
"""Enters a context for as long as a uv runs that the thread has started, in which another thread may end it."""

_PROGRESS = ("Building", "Built", "Downloading", "Downloaded", "Prepared", "Installed")
"""First words of the lines of uv's output that are passed on as progress."""

_MOST_LINES = 30
"""Lines of output that an error quotes; uv explains a failed resolution in fewer."""

_FRAME = re.compile("[\u00d7\u2500-\u257f\u25b6]")
"""The frame that uv draws round its explanations."""


class UvError(ReprosError):
    """uv ended with an error; the message contains uv's own explanation."""

    def __init__(self, command: str, lines: list[str]) -> None:
        """Compose the message from uv's output: from `error:` or its cross on, else the last lines."""
        lines = _shorten_build(lines)
        begin = next((n for n, line in enumerate(lines) if re.match(r"\s*(error:|\u00d7)", line)), -_MOST_LINES)
        words = " ".join(_FRAME.sub(" ", " ".join(lines[begin:][:_MOST_LINES])).split()).removeprefix("error: ")
        self.is_without_solution = words.startswith("No solution found")
        """Whether the requirements contradict each other, so that the next time ends alike."""
        super().__init__(f"uv {command}: {words or 'no reason given'}")


def _shorten_build(lines: list[str]) -> list[str]:
    """Return the lines of an error with the last one alone of what a package's own build has written."""
    words = [_FRAME.sub(" ", line).strip() for line in lines]
    begin = next((number for number, line in enumerate(words) if line in {"[stdout]", "[stderr]"}), len(lines))
    written = list(takewhile(lambda line: not line.startswith("hint:"), words[begin:]))
    return [*lines[:begin], *[line for line in written if line][-1:]]


def run_uv(*arguments: str | Path, folder: Path, report_progress: ReportProgress | None = None) -> str:
    """Run uv with pip's settings and return its output, stdout and stderr merged.

    Args:
        *arguments: the command and its options.
        folder: where to run it; not the user's working directory, since uv reads the settings of the project around it.
        report_progress: receives uv's lines of progress as they come.

    Raises:
        UvError: uv ended with an error.
    """
    from uv import find_uv_bin  # noqa: PLC0415 # cells in the user's own environment run without uv

    environ = {**os.environ, **uv_settings(os.environ), "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
    environ.pop("VIRTUAL_ENV", None)  # every command here names its own environment
    command = [find_uv_bin(), *(str(argument) for argument in arguments)]
    lines = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            with watch_uv.get()(process):
                for line in process.stdout or ():
                    lines.append(line.rstrip())
                    if report_progress is not None and line.lstrip().startswith(_PROGRESS):
                        report_progress(f"  {line.strip()}")
        except BaseException:  # an interrupt must not leave a download running
            process.kill()
            raise
    if process.returncode != 0:
        raise UvError(" ".join(takewhile(str.isalpha, command[1:])), lines)
    return "\n".join(lines)
