"""The summary table with the verdict of every cell, from record lines.

`repros run` ends with it, and `repros summary FILE` prints the same table from a file, so it must depend on nothing but
the record lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath

from repros.engine import record
from repros.engine.record import RecordLine
from repros.model import Category, Verdict
from repros.text.layout import heading
from repros.text.styled import Text
from repros.text.wording import count, wrap

_STYLES = {
    Category.AGREES: "green",
    Category.NEWS: "yellow",
    Category.TROUBLE: "red",
    Category.SKIPPED: "dim",
    Category.NOT_JUDGED: "yellow",
}
_WIDE = ("variant", "strategy", "device", "stack", "verdict", "seconds")
_NARROW = ("variant", "strategy", "dev", "stack", "verdict", "sec")
_INDENT = 2
_DOES_NOT_FIX = "does not fix"
_FOUND = " (found "
"""A part of each reason that names a release on which a script cannot run."""
_NO_EVIDENCE = "A script that cannot run on a release is no evidence about that release; see repros audit."


def summary_table(lines: Iterable[RecordLine], width: int, *, verbose: bool = False) -> Text:
    """Return the summary table.

    Args:
        lines: record lines in any order, of which the last one of each cell is used.
        width: columns of the output.
        verbose: whether to show a row for each cell that was not run.
    """
    every = list(lines)
    cells = record.latest(every)
    shown = [line for line in cells if verbose or _verdict(line) is not Verdict.UNAVAILABLE]
    parts = [*_rows(shown, width), *_versions(shown, width), *([] if verbose else _unavailable_lines(cells, width))]
    if len(every) > len(cells):
        parts.append(Text(f"{count(len(every) - len(cells), 'earlier result')} of the same cells omitted", "dim"))
    return Text("\n").join([*parts, counts_line(cells)])


def counts_line(lines: Iterable[RecordLine]) -> Text:
    """Return the last line of the table: the number of cells per category."""
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


def verdict_style(verdict: Verdict) -> str:
    """Return the colour of a verdict."""
    return _STYLES[verdict.category]


def short_environment_name(name: str) -> str:
    """Return a stack's name, or the name of the environment's folder for an interpreter's path."""
    return re.sub(r".*?([^/]+)/bin/[^/]+$", r"\1", name)


def _verdict(line: RecordLine) -> Verdict:
    return Verdict(line["verdict"])


def _rows(lines: Sequence[RecordLine], width: int) -> Iterator[Text]:
    """Yield a heading per repro, a row per cell, and the reason below each row that does not agree."""
    if not lines:
        return
    names = _short_names(lines)
    rows = [_columns(line, names) for line in lines]
    layout = _Layout.fit(rows, width, len(_DOES_NOT_FIX) if any(map(_refutes_claim, lines)) else 0)
    yield Text(layout.row(layout.heads), "dim")
    for repro, group in groupby(lines, key=lambda line: line["repro"]):
        members = list(_by_stack(group))
        yield from heading(repro, members[0].get("title") or "", width)
        previous = None
        for line in members:
            variant, *others = _columns(line, names)
            yield from _cell_lines(line, ("" if variant == previous else variant, *others), layout)
            previous = variant
    if not layout.roomy and any(map(_refutes_claim, lines)):
        yield Text(f"x  a documented fix that {_DOES_NOT_FIX}", "magenta")


def _by_stack(lines: Iterable[RecordLine]) -> Iterator[RecordLine]:
    """Yield a repro's cells; those of one variant, strategy and device are sorted by stack: they end in any order."""
    for _, cells in groupby(lines, key=lambda line: (line["variant"], line["strategy"], line["device"])):
        yield from sorted(cells, key=lambda line: str(line["stack"]["name"]))


def _cell_lines(line: RecordLine, columns: Sequence[str], layout: _Layout) -> Iterator[Text]:
    """Yield a cell's row, then the rest of a long variant name, then the reason if the cell does not agree."""
    verdict = _verdict(line)
    agrees = verdict.category is Category.AGREES
    flag = "x" if _refutes_claim(line) and not layout.roomy else "!" if verdict.disagrees else " "
    first, *more = _break_name(columns[0], layout.widths[0])
    plain = layout.row((first, *columns[1:]), flag)
    at = _INDENT + sum(layout.widths[:4]) + 4 * layout.gap
    row = (
        Text(plain[:at])
        .append(plain[at : at + len(verdict)], verdict_style(verdict))
        .append(plain[at + len(verdict) :])
    )
    if _refutes_claim(line) and layout.roomy:
        row.append(f"  {_DOES_NOT_FIX}", "magenta")
    yield row
    yield from (Text(f"{'':<{_INDENT + 1}}{part}") for part in more)
    reason = "" if agrees else str(line.get("reason") or "")
    indent = " " * 2 * _INDENT
    yield from (Text(part, verdict_style(verdict)) for part in wrap(reason, layout.width, indent))


@dataclass(frozen=True)
class _Layout:
    """The widths of the columns, which fit the rows into the output."""

    width: int
    roomy: bool
    """Whether rows fit with two spaces between columns and a note after them."""
    widths: Sequence[int]

    @classmethod
    def fit(cls, rows: Sequence[Sequence[str]], width: int, note: int) -> _Layout:
        """Choose wide heads and gaps if rows and notes fit, else narrow ones and broken variant names."""
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

    def row(self, columns: Sequence[str], flag: str = " ") -> str:
        """Return one row: words aligned to the left, the number to the right."""
        *words, seconds = columns
        *widths, last = self.widths
        left = (" " * self.gap).join(f"{word:<{width}}" for word, width in zip(words, widths, strict=True))
        return f"{flag:<{_INDENT}}{left}{'':<{self.gap}}{seconds:>{last}}".rstrip()


def _refutes_claim(line: RecordLine) -> bool:
    """Return whether the cell shows that a documented fix does not work."""
    return bool(line.get("claim")) and _verdict(line) is Verdict.REPRODUCED


def _columns(line: RecordLine, names: Mapping[str, str]) -> tuple[str, ...]:
    seconds = line.get("seconds")
    return (
        line["variant"],
        line["strategy"],
        line["device"],
        names[line["stack"]["name"]],
        _verdict_text(line),
        "" if seconds is None else f"{seconds:.1f}",
    )


def _verdict_text(line: RecordLine) -> str:
    """Return the verdict, with the number of agreeing repeats: `flaky 3/5`."""
    repeats = line.get("repeats")
    return f"{line['verdict']} {repeats['agreeing']}/{repeats['n']}" if repeats else str(line["verdict"])


def _break_name(name: str, width: int) -> list[str]:
    """Break a variant's name after its underscores."""
    parts: list[str] = [""]
    for word in re.findall(r"[^_]*_?", name):
        if parts[-1] and len(parts[-1]) + len(word) > width:
            parts.append("")
        parts[-1] += word
    return parts


def _short_names(lines: Iterable[RecordLine]) -> dict[str, str]:
    """Return the name of each environment in the table: short, unless two short names are equal."""
    short = {name: short_environment_name(name) for name in {line["stack"]["name"]: None for line in lines}}
    counts = Counter(short.values())
    return {name: short[name] if counts[short[name]] == 1 else name for name in short}


def _versions(lines: Iterable[RecordLine], width: int) -> Iterator[Text]:
    """Yield the versions in every environment of the table, and what its results may depend on besides."""
    lines = list(lines)
    names = _short_names(lines)
    versions: dict[str, dict[str, str]] = {}
    for line in lines:
        stack = line["stack"]
        versions.setdefault(stack["name"], {}).update(stack["versions"], python=stack["python"])
    longest = max(map(len, names.values()), default=0)
    if versions:
        yield Text()
    for name, installed in sorted(versions.items()):
        path = f" ({PurePath(name)})" if name != names[name] else ""
        numbers = ", ".join(f"{package} {version}" for package, version in sorted(installed.items(), key=_python_first))
        row = f"{names[name]:<{longest}}  {numbers}{path}"
        yield from (Text(part, "dim") for part in wrap(row, width, hanging=" " * (longest + 2)))
    notes = dict.fromkeys((line["stack"]["name"], note) for line in lines for note in line["stack"].get("notes", []))
    for name, note in notes:
        yield from (Text(part, "yellow") for part in wrap(f"{names[name]}: {note}", width, hanging="  "))
    if versions:
        yield Text()


def _python_first(version: tuple[str, str]) -> tuple[bool, str]:
    return version[0] != "python", version[0]


def _unavailable_lines(lines: Iterable[RecordLine], width: int) -> Iterator[Text]:
    """Yield the unavailable cells, counted by device and reason."""
    missing = [line for line in lines if _verdict(line) is Verdict.UNAVAILABLE]
    if not missing:
        return
    counts = Counter((line["device"], str(line["reason"])) for line in missing)
    repros: dict[tuple[str, str], dict[str, None]] = {}
    for line in missing:
        repros.setdefault((line["device"], str(line["reason"])), {})[line["repro"]] = None
    yield Text("Not run:")
    for (device, reason), number in counts.most_common():
        row = f"{number:>4}  {device}: {reason} ({', '.join(repros[device, reason])})"
        yield from (Text(part, "dim") for part in wrap(row, width, hanging=" " * 6))
    if any(_FOUND in reason for _, reason in counts):
        yield from (Text(part, "dim") for part in wrap(_NO_EVIDENCE, width))
    yield Text()
