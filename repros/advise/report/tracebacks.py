"""The traceback of a report: the end of a failed run's log, with the line numbers of the report's script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

from repros.advise.export.script import script_file_name
from repros.advise.report.redact import Redactor
from repros.engine.launch import logs
from repros.engine.source import Block, first_line
from repros.model import Repro
from repros.model.observation import path_in_package
from repros.text.control import remove_controls

_LONGEST_TRACEBACK = 60
"""Lines."""
_HEAD = 7
"""Lines before the cut in a longer one: its header, and the frames of the script itself."""
_LONGEST_LINE = 1_000
_OPENING = "Traceback (most recent call last)"

_FRAME = re.compile(r'^(?:\[rank\d+\]:)? +File "')
_INDENTED = re.compile(r"^(?:\[rank\d+\]:)?  ")
_OWN_FRAMES = ("/repros/inside/", "/repros/simulated_gpus/import_hooks.py")
_LOCATION = re.compile(r'File "(?P<path>[^"]*)"(?:, line (?P<line>\d+))?')


@dataclass(frozen=True)
class ScriptVersions:
    """The script that was run, and the script in the report, which has fewer variants and other line numbers."""

    path: str
    """The path of the script that was run, as in tracebacks."""
    public_path: str
    """Its path in the report."""
    reported: str
    """The file name of the script in the report."""
    lines: tuple[str, ...]
    """The stripped lines of the script that was run."""
    numbers: Mapping[int, int]
    """From the numbers of these lines, from 1, to those in the report's script, for unchanged lines."""

    @classmethod
    def of(cls, repro: Repro, public_path: str, text: str) -> ScriptVersions:
        """Return the scripts of a repro; `text` is the one in the report."""
        run, reported = _lines_with_owners(repro.path.read_text("utf-8")), _lines_with_owners(text.strip("\n"))
        blocks = SequenceMatcher(None, run, reported, autojunk=False).get_matching_blocks()
        numbers = {block.a + step + 1: block.b + step + 1 for block in blocks for step in range(block.size)}
        lines = tuple(line for _, line in run)
        return cls(str(repro.path.resolve()), public_path, script_file_name(repro).name, lines, numbers)

    def public_location(self, location: re.Match[str], source: str) -> str:
        """Return a frame's location with a short path, and with the line number in the report's script if it is there.

        Args:
            location: the file and the line of a frame.
            source: the traceback's next line, which quotes the line; it differs if the script has changed since.
        """
        path, number = location["path"], int(location["line"] or 0)
        if path != self.path:
            return location[0].replace(path, path_in_package(path), 1)
        line = self.lines[number - 1] if 0 < number <= len(self.lines) else ""
        if line and line in source and number in self.numbers:
            return f'File "{self.reported}", line {self.numbers[number]}'
        return location[0].replace(path, self.public_path, 1)


def _lines_with_owners(text: str) -> list[tuple[str, str]]:
    """Return each stripped line with the names of its enclosing functions and classes.

    Two variants may have an equal line, of which the report's script may have only one.
    """
    lines = text.split("\n")
    owners = [""] * len(lines)
    try:
        nodes = [*ast.walk(ast.parse(text))]  # outermost first
    except SyntaxError:  # redaction may make a user's script invalid
        nodes = []
    for node in nodes:
        if isinstance(node, Block):
            for number in range(first_line(node) - 1, node.end_lineno or 0):
                owners[number] += f".{node.name}"
    return [(owner, line.strip()) for owner, line in zip(owners, lines, strict=True)]


def last_traceback(folders: Iterable[Path], scripts: ScriptVersions, redactor: Redactor) -> str:
    """Return the last traceback in the first cell folder with one in its logs, redacted; empty if there is none.

    The complete log is redacted before it is cut, because a part of a key or of a secret cannot be recognised.
    """
    for folder in folders:
        for log in logs.read(folder, logs.find(folder)):
            rows = redactor.redact_text("\n".join(_user_frames(_rows(log), scripts))).split("\n")
            starts = [number for number, row in enumerate(rows) if _OPENING in row]
            if starts:
                return _shorten([row[:_LONGEST_LINE] for row in rows[starts[-1] :]])
    return ""


def _rows(raw: bytes) -> list[str]:
    """Return the lines of a log without terminal escapes."""
    return remove_controls(raw.decode("utf-8", "replace")).removesuffix("\n").split("\n")


def _user_frames(rows: Iterable[str], scripts: ScriptVersions) -> Iterator[str]:
    """Yield a traceback's lines without the frames of this project's launcher, and with short paths."""
    own_frame = False
    for row, following in pairwise([*rows, ""]):
        if _FRAME.search(row):
            own_frame = any(path in row for path in _OWN_FRAMES)
        elif not _INDENTED.search(row):
            own_frame = False
        if not own_frame:
            location = _LOCATION.search(row)
            short = row.replace(location[0], scripts.public_location(location, following), 1) if location else row
            yield short.replace(scripts.path, scripts.public_path)


def _shorten(rows: Sequence[str]) -> str:
    """Return a traceback's first and last lines."""
    omitted = len(rows) - _LONGEST_TRACEBACK
    if omitted > 0:
        rows = [*rows[:_HEAD], f"[... {omitted} lines ...]", *rows[_HEAD + omitted :]]
    return "\n".join(rows)
