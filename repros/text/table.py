"""The summary table: what became of every cell, made from record lines alone.

`repros run` ends with it and `repros summary FILE` makes the same one again, so nothing here may need
more than the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

from rich.text import Text

from repros.model import Category, Verdict
from repros.text.wording import count, wrap

Line = Mapping[str, Any]
"""One object of a results file, as :func:`repros.record.read` yields it."""

_STYLES = {Category.AGREES: "green", Category.NEWS: "yellow", Category.TROUBLE: "red", Category.SKIPPED: "dim"}
_WIDE = ("variant", "strategy", "device", "stack", "verdict", "seconds")
_NARROW = ("variant", "strategy", "dev", "stack", "verdict", "sec")
_INDENT = 2
_DOES_NOT_FIX = "does not fix"


def table(lines: Iterable[Line], width: int, *, verbose: bool = False) -> Text:
    """Return the whole summary.

    Args:
        lines: record lines, in any order; of several for one cell the last counts.
        width: columns that the reader has.
        verbose: whether cells that were not run get a row each.
    """
    every = list(lines)
    cells = latest(every)
    shown = [line for line in cells if verbose or _verdict(line) is not Verdict.UNAVAILABLE]
    parts = [*_rows(shown, width), *_stacks(shown, width), *([] if verbose else _not_run(cells, width))]
    if len(every) > len(cells):
        parts.append(Text(f"{count(len(every) - len(cells), 'earlier result')} of the same cells left out", "dim"))
    return Text("\n").join([*parts, closing(cells)])


def latest(lines: Iterable[Line]) -> list[Line]:
    """Return the last line of every cell: by repro, and below it what belongs together in the order of its first lines.

    Cells that were run side by side stand in the file as they were done.
    """
    by_cell = {_cell(line): line for line in lines}
    seen: dict[tuple[str, ...], int] = {}
    for cell in by_cell:
        for length in range(1, len(cell) + 1):
            seen.setdefault(cell[:length], len(seen))

    def place(cell: tuple[str, ...]) -> tuple[str | int, ...]:
        return (cell[0], *(seen[cell[: length + 1]] for length in range(1, len(cell))))

    return [by_cell[cell] for cell in sorted(by_cell, key=place)]


def disagreeing(lines: Iterable[Line]) -> list[Line]:
    """Return the cells that were run and do not agree, those that could not be judged included."""
    return [line for line in latest(lines) if _disagrees(line)]


def closing(lines: Iterable[Line]) -> Text:
    """Return the last line: how many cells agree, are news, are trouble, were not run or judged."""
    verdicts = [_verdict(line) for line in lines]
    categories = Counter(verdict.category for verdict in verdicts)
    judged = [
        (f"{categories[Category.AGREES]} agree", "green" if categories[Category.AGREES] else ""),
        (f"{categories[Category.NEWS]} news", "yellow" if categories[Category.NEWS] else ""),
        (f"{categories[Category.TROUBLE]} trouble", "red" if categories[Category.TROUBLE] else ""),
    ]
    skipped = [
        (f"{verdicts.count(verdict)} {verdict}", style)
        for verdict, style in ((Verdict.UNAVAILABLE, "dim"), (Verdict.INFRA, "yellow"))
        if verdict in verdicts
    ]
    halves = [Text(", ").join(Text(*part) for part in parts) for parts in (judged, skipped) if parts]
    return Text("; ").join(halves)


def style(verdict: Verdict) -> str:
    """Return the colour of a verdict."""
    return "yellow" if verdict is Verdict.INFRA else _STYLES[verdict.category]


def short_name(stack: str) -> str:
    """Return a stack's name, or for an interpreter's path the name of its environment's folder."""
    return re.sub(r".*?([^/]+)/bin/[^/]+$", r"\1", stack) if "/" in stack else stack


def _disagrees(line: Line) -> bool:
    verdict = _verdict(line)
    return verdict is not Verdict.UNAVAILABLE and verdict.category is not Category.AGREES


def _verdict(line: Line) -> Verdict:
    return Verdict(line["verdict"])


def _cell(line: Line) -> tuple[str, ...]:
    return (line["repro"], line["variant"], line["strategy"], line["device"], line["stack"]["name"])


def _rows(lines: Sequence[Line], width: int) -> Iterator[Text]:
    """Yield the table: a heading for each repro, a row for each cell, the reason below a row that does not agree."""
    if not lines:
        return
    names = _short_names(lines)
    rows = [_columns(line, names) for line in lines]
    layout = _Layout.fitting(rows, width, len(_DOES_NOT_FIX) if any(map(_refuted, lines)) else 0)
    yield Text(layout.row(layout.heads), "dim")
    for repro, group in groupby(lines, key=lambda line: line["repro"]):
        members = list(group)
        heading = f"{repro} {members[0].get('title') or ''}".rstrip()
        yield from (Text(part, "bold") for part in wrap(heading, width, hanging=" " * 9))
        before = None
        for line in members:
            variant, *others = _columns(line, names)
            yield from _cell_lines(line, ("" if variant == before else variant, *others), layout)
            before = variant
    if not layout.roomy and any(map(_refuted, lines)):
        yield Text(f"x  a documented fix that {_DOES_NOT_FIX}", "magenta")


def _cell_lines(line: Line, columns: Sequence[str], layout: _Layout) -> Iterator[Text]:
    """One cell's row; below it the rest of a long name, and what is to be said."""
    verdict = _verdict(line)
    agrees = verdict.category is Category.AGREES
    mark = "x" if _refuted(line) and not layout.roomy else "!" if _disagrees(line) else " "
    first, *more = _folded(columns[0], layout.widths[0])
    row = Text(layout.row((first, *columns[1:]), mark))
    at = _INDENT + sum(layout.widths[:4]) + 4 * layout.gap
    row.stylize(style(verdict), at, at + len(verdict))
    if _refuted(line) and layout.roomy:
        row.append(f"  {_DOES_NOT_FIX}", "magenta")
    yield row
    yield from (Text(f"{'':<{_INDENT + 1}}{part}") for part in more)
    reason = "" if agrees else str(line.get("reason") or "")
    indent = " " * 2 * _INDENT
    yield from (Text(part, style(verdict)) for part in wrap(reason, layout.width, indent))


@dataclass(frozen=True)
class _Layout:
    """How wide every column is, so that rows fit the reader's width."""

    width: int
    roomy: bool
    """Whether everything fits with two spaces between columns and a note behind them."""
    widths: Sequence[int]

    @classmethod
    def fitting(cls, rows: Sequence[Sequence[str]], width: int, note: int) -> _Layout:
        """Choose wide heads and gaps where rows and notes fit, else narrow ones and names in parts."""
        wide = [max(map(len, column)) for column in zip(_WIDE, *rows, strict=True)]
        if _INDENT + sum(wide) + 2 * len(wide) + note <= width:
            return cls(width, roomy=True, widths=wide)
        narrow = [max(map(len, column)) for column in zip(_NARROW, *rows, strict=True)]
        room = width - _INDENT - sum(narrow[1:]) - len(narrow) + 1
        return cls(width, roomy=False, widths=[min(narrow[0], max(room, 8)), *narrow[1:]])

    @property
    def heads(self) -> Sequence[str]:
        """The columns' names."""
        return _WIDE if self.roomy else _NARROW

    @property
    def gap(self) -> int:
        """Spaces between two columns."""
        return 2 if self.roomy else 1

    def row(self, columns: Sequence[str], mark: str = " ") -> str:
        """Set the columns in line, numbers to the right."""
        *words, seconds = columns
        *widths, last = self.widths
        left = (" " * self.gap).join(f"{word:<{width}}" for word, width in zip(words, widths, strict=True))
        return f"{mark:<{_INDENT}}{left}{'':<{self.gap}}{seconds:>{last}}".rstrip()


def _refuted(line: Line) -> bool:
    """Whether the cell shows that a documented fix does not fix."""
    return bool(line.get("claim")) and _verdict(line) is Verdict.REPRODUCED


def _columns(line: Line, names: Mapping[str, str]) -> tuple[str, ...]:
    seconds = line.get("seconds")
    return (
        line["variant"],
        line["strategy"],
        line["device"],
        names[line["stack"]["name"]],
        _ended(line),
        "" if seconds is None else f"{seconds:.1f}",
    )


def _ended(line: Line) -> str:
    """Return the verdict, with how many of its repeats agree: `flaky 3/5`."""
    repeats = line.get("repeats")
    return f"{line['verdict']} {repeats['agreeing']}/{repeats['n']}" if repeats else str(line["verdict"])


def _folded(name: str, width: int) -> list[str]:
    """Break a variant's name behind its underscores."""
    parts: list[str] = [""]
    for word in re.findall(r"[^_]*_?", name):
        if parts[-1] and len(parts[-1]) + len(word) > width:
            parts.append("")
        parts[-1] += word
    return parts


def _short_names(lines: Iterable[Line]) -> dict[str, str]:
    """Return what to call each stack: short, unless two would then be called the same."""
    stacks = list(dict.fromkeys(line["stack"]["name"] for line in lines))
    counts = Counter(map(short_name, stacks))
    return {stack: short_name(stack) if counts[short_name(stack)] == 1 else stack for stack in stacks}


def _stacks(lines: Iterable[Line], width: int) -> Iterator[Text]:
    """Yield the versions installed in each stack of the table."""
    lines = list(lines)
    names = _short_names(lines)
    versions: dict[str, dict[str, str]] = {}
    for line in lines:
        stack = line["stack"]
        versions.setdefault(stack["name"], {}).update(stack["versions"], python=stack["python"])
    longest = max(map(len, names.values()), default=0)
    if versions:
        yield Text()
    for stack, found in sorted(versions.items()):
        place = f" ({PurePath(stack)})" if stack != names[stack] else ""
        held = ", ".join(f"{name} {number}" for name, number in sorted(found.items(), key=_python_first))
        said = f"{names[stack]:<{longest}}  {held}{place}"
        yield from (Text(part, "dim") for part in wrap(said, width, hanging=" " * (longest + 2)))
    if versions:
        yield Text()


def _python_first(version: tuple[str, str]) -> tuple[bool, str]:
    return version[0] != "python", version[0]


def _not_run(lines: Iterable[Line], width: int) -> Iterator[Text]:
    """Cells that are not to be had, counted by their reason: they are not absent, only not here."""
    missing = [line for line in lines if _verdict(line) is Verdict.UNAVAILABLE]
    if not missing:
        return
    counts = Counter((line["device"], str(line["reason"])) for line in missing)
    repros: dict[tuple[str, str], dict[str, None]] = {}
    for line in missing:
        repros.setdefault((line["device"], str(line["reason"])), {})[line["repro"]] = None
    yield Text("Not run:")
    for (device, reason), number in counts.most_common():
        said = f"{number:>4}  {device}: {reason} ({', '.join(repros[device, reason])})"
        yield from (Text(part, "dim") for part in wrap(said, width, hanging=" " * 6))
    yield Text()
