"""Snapshots of what the commands print: one text file for each command and format.

A snapshot is the only place under `tests` with a command's words: `tests/cli/__snapshots__/test_audit/test_text.txt` is
what `test_text` in `tests/cli/test_audit.py` compares. `pytest --snapshot-update PATH` writes it anew.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from repros import __version__

ROOT = Path(__file__).parents[1]
"""This checkout."""
Run = Callable[..., tuple[int, str, str]]
"""Runs a command with these words; returns its exit code and its two outputs."""


class TextSnapshot(SingleFileSnapshotExtension):
    """A text file for each test, in the folder `__snapshots__` next to the test's file."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT


def transcript(run: Run, *lines: str, **values: object) -> str:
    """Run command lines and return what a terminal shows of them: the lines, their outputs, their exit codes.

    Args:
        run: runs the words behind `repros`, such as the fixture of `tests/cli`.
        lines: the command lines without `repros`, as in a shell.
        values: what differs between runs, by the name that replaces it, such as `here` for a folder.
    """
    return mask("\n".join(_entry(line, *run(*shlex.split(line))) for line in lines), **values)


def _entry(line: str, code: int, out: str, err: str) -> str:
    text = f"$ repros {line}\n{out}"
    if err:
        text += f"[stderr]\n{err}"
    return text + (f"[exit code {code}]\n" if code else "")


def refusals(run: Run, *lines: str, **values: object) -> str:
    """Run command lines that are refused, and return each with its sentence.

    Args:
        run: runs the words behind `repros`.
        lines: the command lines without `repros`; every one ends with exit code 2 and one line on stderr.
        values: what differs between runs, by the name that replaces it.
    """
    entries = []
    for line in lines:
        code, out, err = run(*shlex.split(line))
        assert (code, out, err.count("\n")) == (2, "", 1), line
        assert err.startswith("repros: "), err
        entries.append(f"$ repros {line}\n{err}")
    return mask("\n".join(entries), **values)


def mask(text: str, **values: object) -> str:
    """Replace what differs between machines and runs: these values, durations, folders, the release."""
    known = {**values, "root": ROOT, "python": sys.executable}
    # The longest first: one of them may be inside of another.
    for name, value in sorted(known.items(), key=lambda item: -len(str(item[1]))):
        text = text.replace(str(value), name.upper())
    text = re.sub(r"\b\d+\.\d s\b", "N s", text)
    text = re.sub(r"\b\d{8}-\d{6}-\d+\b", "RUN", text)  # the folder of a run's logs
    return text.replace(__version__, "VERSION")
