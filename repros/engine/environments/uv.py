"""Subprocess calls of uv, with pip's settings and live progress."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from itertools import takewhile
from pathlib import Path

from repros.engine.environments.pip_settings import uv_settings
from repros.model.cache import cache_folder
from repros.model.errors import ReprosError

ReportProgress = Callable[[str], None]
"""Receives one line of progress for the user."""

watch_uv: ContextVar[Callable[[subprocess.Popen[str]], AbstractContextManager[object]]] = ContextVar(
    "watch_uv", default=nullcontext
)
"""Returns a context that is entered while a uv process of this thread runs, in which another thread may kill it."""

_PROGRESS = ("Building", "Built", "Downloading", "Downloaded", "Prepared", "Installed")
"""First words of uv's output lines that count as progress."""

_MAX_LINES = 30
"""Lines of output that an error quotes; uv's explanation of a failed resolution is shorter."""

_FRAME = re.compile("[\u00d7\u2500-\u257f\u25b6]")
"""The box-drawing characters of uv's explanations."""


OWN_CACHE = "uv"
"""Folder of the cache folder with uv's cache, if uv's usual one is on another disk."""


class UvError(ReprosError):
    """uv failed; the message contains uv's explanation, from `error:` or its cross on, or the last lines."""

    def __init__(self, command: str, lines: list[str]) -> None:
        lines = _shorten_build(lines)
        begin = next((n for n, line in enumerate(lines) if re.match(r"\s*(error:|\u00d7)", line)), -_MAX_LINES)
        words = " ".join(_FRAME.sub(" ", " ".join(lines[begin:][:_MAX_LINES])).split()).removeprefix("error: ")
        self.is_without_solution = words.startswith("No solution found")
        """Whether the requirements conflict, so that a retry would fail as well."""
        super().__init__(f"uv {command}: {words or 'no reason given'}")


def _shorten_build(lines: list[str]) -> list[str]:
    """Return the lines of an error, of a package's own build output only the last one."""
    words = [_FRAME.sub(" ", line).strip() for line in lines]
    begin = next((number for number, line in enumerate(words) if line in {"[stdout]", "[stderr]"}), len(lines))
    written = list(takewhile(lambda line: not line.startswith("hint:"), words[begin:]))
    return [*lines[:begin], *[line for line in written if line][-1:]]


def run_uv(
    *arguments: str | Path,
    folder: Path,
    report_progress: ReportProgress | None = None,
    find_links: Iterable[str] = (),
) -> str:
    """Run uv with pip's settings and return its output, stdout and stderr merged.

    Args:
        *arguments: the command and its options.
        folder: uv's working directory; not the user's, since uv reads the settings of the surrounding project.
        report_progress: receives uv's lines of progress immediately.
        find_links: addresses of pages with wheels, in addition to those of the user.

    Raises:
        UvError: uv ended with an error.
    """
    from uv import find_uv_bin  # noqa: PLC0415 # not needed for cells in the user's own environment

    environ = {**os.environ, **uv_settings(os.environ), "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
    environ.pop("VIRTUAL_ENV", None)  # every command names its environment
    if "UV_CACHE_DIR" not in environ and (own := _cache_on_the_environments_disk(environ)) is not None:
        environ["UV_CACHE_DIR"] = str(own)
    if pages := [*find_links]:
        environ["UV_FIND_LINKS"] = ",".join(filter(None, [environ.get("UV_FIND_LINKS"), *pages]))
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
        except BaseException:  # an interrupt must also end a running download
            process.kill()
            raise
    if process.returncode != 0:
        raise UvError(" ".join(takewhile(str.isalpha, command[1:])), lines)
    return "\n".join(lines)


def _cache_on_the_environments_disk(environ: Mapping[str, str]) -> Path | None:
    """Return a folder for uv's cache on the disk of the environments; None if uv's usual one is on it.

    Between disks no links are possible: each environment would have its own copy of every wheel.
    """
    usual, own = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser(), cache_folder()
    try:
        return own / OWN_CACHE if usual.stat().st_dev != own.stat().st_dev else None
    except OSError:  # one of them does not exist yet
        return None
