"""The traceback of a report: the end of a failed run's log, with the lines of the script that the report has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

from repros.advise.export.script import script_file_name
from repros.advise.export.source_edits import first_line, last_line
from repros.advise.report.redact import Redactor
from repros.engine.launch import logs
from repros.model import Repro
from repros.model.observation import path_in_package
from repros.text.control import remove_controls

_LONGEST_TRACEBACK = 60
"""Lines."""
_BEGINNING = 7
"""Lines of a longer one that are kept before the cut: its opening, and the frames of the script itself."""
_LONGEST_LINE = 1_000
_OPENING = "Traceback (most recent call last)"

_FRAME = re.compile(r'^(?:\[rank\d+\]:)? +File "')
_INDENTED = re.compile(r"^(?:\[rank\d+\]:)?  ")
_OWN_FRAMES = ("/repros/inside/", "/repros/simulated_gpus/import_hooks.py")
_FRAME_PLACE = re.compile(r'File "(?P<path>[^"]*)"(?:, line (?P<line>\d+))?')


@dataclass(frozen=True)
class ScriptVersions:
    """The script that was run, and the one that the report has, which lacks variants and has other lines."""

    path: str
    """Of the script that was run, as tracebacks name it."""
    public_path: str
    """What the report calls it."""
    reported: str
    """The file name of the script in the report."""
    lines: tuple[str, ...]
    """Of the script that was run, without blanks around them."""
    numbers: Mapping[int, int]
    """The number of each of these lines, from 1, in the script of the report; of those that it has unchanged."""

    @classmethod
    def of(cls, repro: Repro, public_path: str, text: str) -> ScriptVersions:
        """Return the scripts of a repro; `text` is the one in the report."""
        run, reported = _lines_with_owners(repro.path.read_text("utf-8")), _lines_with_owners(text.strip("\n"))
        blocks = SequenceMatcher(None, run, reported, autojunk=False).get_matching_blocks()
        numbers = {block.a + step + 1: block.b + step + 1 for block in blocks for step in range(block.size)}
        lines = tuple(line for _, line in run)
        return cls(str(repro.path.resolve()), public_path, script_file_name(repro).name, lines, numbers)

    def name_place(self, place: re.Match[str], source: str) -> str:
        """Return a frame's place with a short path, and with the line of the report's script if it has that line.

        Args:
            place: the file and the line of a frame.
            source: the traceback's next line, which quotes the line: another one if the script has changed since.
        """
        path, number = place["path"], int(place["line"] or 0)
        if path != self.path:
            return place[0].replace(path, path_in_package(path), 1)
        line = self.lines[number - 1] if 0 < number <= len(self.lines) else ""
        if line and line in source and number in self.numbers:
            return f'File "{self.reported}", line {self.numbers[number]}'
        return place[0].replace(path, self.public_path, 1)


def _lines_with_owners(text: str) -> list[tuple[str, str]]:
    """Return each line without blanks around it, behind the names of the functions and classes that it is in.

    Two variants may have a line in common, of which one is left.
    """
    lines = text.split("\n")
    owners = [""] * len(lines)
    try:
        nodes = [*ast.walk(ast.parse(text))]  # from the outermost inwards
    except SyntaxError:  # what is redacted in a script of the user's own is no Python any more
        nodes = []
    for node in nodes:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for number in range(first_line(node), last_line(node) + 1):
            owners[number - 1] += f".{node.name}"
    return [(owner, line.strip()) for owner, line in zip(owners, lines, strict=True)]


def last_traceback(folders: Iterable[Path], scripts: ScriptVersions, redactor: Redactor) -> str:
    """Return the last traceback in the first of the cell folders whose logs have one, redacted; empty without any.

    The whole log is redacted before anything is cut: a part of a key or of a secret does not show what it is.
    """
    for folder in folders:
        for log in (folder / "main.log", *sorted(folder.glob("processes/*/log.txt"))):
            rows = redactor.redact_text("\n".join(_user_frames(_read_rows(log), scripts))).split("\n")
            starts = [number for number, row in enumerate(rows) if _OPENING in row]
            if starts:
                return _shorten([row[:_LONGEST_LINE] for row in rows[starts[-1] :]])
    return ""


def _read_rows(log: Path) -> list[str]:
    """Return the lines of a log without terminal sequences; a cell's finished log has at most `logs.CAP` bytes."""
    try:
        with log.open("rb") as file:
            raw = file.read(2 * logs.CAP)
    except OSError:
        return []
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
            place = _FRAME_PLACE.search(row)
            short = row.replace(place[0], scripts.name_place(place, following), 1) if place else row
            yield short.replace(scripts.path, scripts.public_path)


def _shorten(rows: Sequence[str]) -> str:
    """Return a traceback's first lines and its last lines."""
    left_out = len(rows) - _LONGEST_TRACEBACK
    if left_out > 0:
        rows = [*rows[:_BEGINNING], f"[... {left_out} lines ...]", *rows[_BEGINNING + left_out :]]
    return "\n".join(rows)
