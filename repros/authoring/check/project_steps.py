"""Steps of `repros check` that the project with the catalogue configures, each a command.

They are in the `pyproject.toml` of the checkout that a script is in:

    [[tool.repros.check]]
    title = "Style"
    command = ["python", "tools/style.py"]
    when = "rules"

The command runs in the folder of that file, with the ids of the scripts as further arguments. It prints what is left to
do on stdout, one sentence a line, and exits with 1; or one line on what is fine, and exits with 0. Any other end is an
error, shown with its stderr.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.settings import find_checkout, find_table, is_own_file

MEASURED = "REPROS_CHECK_MEASURED"
"""Environment variable of each command: ids of the scripts whose cells this check has run, separated by spaces."""
_TABLE = "[[tool.repros.check]]"


class When(StrEnum):
    """The point of a check at which a step runs."""

    RULES = "rules"
    """After the rules, before any cell; with `--rules`, too."""
    RUNS = "runs"
    """After the cells, if all agree."""
    DONE = "done"
    """Last, if no more than a bisection is left to do."""


@dataclass(frozen=True)
class ProjectStep:
    """A configured step and the scripts that it concerns."""

    title: str
    command: tuple[str, ...]
    """Without the ids; `python` is the interpreter that runs the check."""
    when: When
    root: Path
    """Folder of the `pyproject.toml`."""
    repros: tuple[Repro, ...]

    def run(self, measured: Sequence[str]) -> Ran:
        """Run the command for the scripts.

        Args:
            measured: ids of the scripts whose cells this check has run.
        """
        program, *arguments = self.command
        words = [sys.executable if program == "python" else program, *arguments, *(repro.id for repro in self.repros)]
        environ = {**os.environ, MEASURED: " ".join(measured)}
        try:
            done = subprocess.run(words, cwd=self.root, env=environ, capture_output=True, text=True, check=False)
        except OSError as error:
            return Ran([f"fix {shlex.join(self.command)}: {error.strerror}"])
        lines = tuple(filter(None, map(str.strip, done.stdout.splitlines())))
        if done.returncode == 0:
            return Ran([], " ".join(lines), done.stderr)
        if done.returncode == 1 and lines:
            return Ran(lines, "", done.stderr)
        # A Python program that raises exits with 1, too, but prints nothing on stdout.
        problem = f"fix {shlex.join(self.command)}, which ended with exit code {done.returncode}"
        return Ran([problem], "", done.stdout + done.stderr)


@dataclass(frozen=True)
class Ran:
    """What a step's command printed."""

    to_do: Sequence[str]
    fine: str = ""
    output: str = ""
    """Further output, shown if something is left to do."""


def read_steps(repros: Sequence[Repro]) -> list[ProjectStep]:
    """Return the steps of the scripts' checkouts, in the order of each file.

    Raises:
        ReprosError: a wrong value in `[[tool.repros.check]]`.
    """
    by_file: dict[Path, list[Repro]] = {}
    for repro in repros:
        if file := _find_file(repro):
            by_file.setdefault(file, []).append(repro)
    return [
        _parse_step(file, number, entry, tuple(own))
        for file, own in by_file.items()
        for number, entry in enumerate(_entries(file), 1)
    ]


def _find_file(repro: Repro) -> Path | None:
    """Return the `pyproject.toml` of a script's checkout; None if there is none, or it belongs to another user.

    For a script of the installed package there is none: a file above the environment is another project's.
    """
    if repro.origin.folder is None:
        checkout = find_checkout()
        return checkout / "pyproject.toml" if checkout else None
    file, _ = find_table(repro.path.resolve().parent)
    return file if file is not None and is_own_file(file) else None


def _entries(file: Path) -> Sequence[Any]:
    found, table = find_table(file.parent)
    entries = table.get("check", []) if found == file else []
    if not isinstance(entries, list):
        raise ReprosError(f"{file}: check in [tool.repros]; expected tables {_TABLE} with title and command.")
    return entries


def _parse_step(file: Path, number: int, entry: object, repros: tuple[Repro, ...]) -> ProjectStep:
    def refuse(problem: str) -> ReprosError:
        return ReprosError(f"{file}: {problem} in {_TABLE} number {number}.")

    if not isinstance(entry, Mapping):
        raise refuse("expected a table with title and command")
    if unknown := [key for key in entry if key not in {"title", "command", "when"}]:
        raise refuse(f"unknown key {unknown[0]!r}, expected title, command or when,")
    title, command, when = entry.get("title"), entry.get("command"), entry.get("when", When.RUNS.value)
    if not isinstance(title, str) or not title.strip():
        raise refuse(f"title = {title!r}, expected a text,")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) and word for word in command):
        raise refuse(f"command = {command!r}, expected a list of words such as ['python', 'tools/style.py'],")
    if when not in [*When]:
        raise refuse(f"when = {when!r}, expected {', '.join(When)},")
    return ProjectStep(title.strip(), tuple(command), When(when), file.parent, repros)
