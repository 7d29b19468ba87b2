"""The output of a run compared with the output that an issue reports: the same words with the same numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.diagnose.issue.printed import Printed

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d++(?:\.\d*+)?(?:e[-+]?\d++)?|\.\d++(?:e[-+]?\d++)?|nan|inf)(?!\w|\.\d)", re.IGNORECASE
)
_VARIES = re.compile(
    r"\d\s?(?:s|ms|sec\w*|min\w*|it/s|s/it|MB|GB|%)\b|%\||\b(?:time|date|seed|pid)\b|\d\d:\d\d", re.IGNORECASE
)
"""Lines whose numbers differ from run to run."""
_RELATIVE = 1e-3
_FEWEST_DIGITS = 3
"""A number with fewer digits may be in any output."""
_MOST_LINES = 20_000


@dataclass(frozen=True)
class OutputComparison:
    """The first lines in which a run's output agrees with an issue's, and differs from it."""

    equal: str = ""
    """A line of both; empty if there is none."""
    different: tuple[str, str] = ("", "")
    """A line of the run, and the issue's with the same words and other numbers."""
    expected: str = ""
    """A line of the run that the issue expects and did not see."""


def compare_output(printed: Printed, output: Iterable[str]) -> OutputComparison:
    """Compare the lines that an issue reports with those of a run.

    Lines that vary from run to run, such as durations, are ignored, and so are lines without a number that tells.

    Args:
        printed: the issue's lines.
        output: the run's.
    """
    by_words: dict[str, dict[str, None]] = {}
    for line, _ in zip(output, range(_MOST_LINES), strict=False):
        by_words.setdefault(_words(line), {})[" ".join(line.split())] = None
    equal, different, expected = "", ("", ""), ""
    for seen in filter(tells, printed.seen):
        lines = [*by_words.get(_words(seen), ())]
        if found := next((line for line in lines if _agree(line, seen)), ""):
            equal = equal or found
        elif lines and not different[0]:
            different = (lines[0], seen)
    for wanted in filter(tells, printed.expected):
        expected = expected or _find_line(by_words, wanted)
    return OutputComparison(equal, different, expected)


def _find_line(by_words: Mapping[str, Iterable[str]], wanted: str) -> str:
    return next((line for line in by_words.get(_words(wanted), ()) if _agree(line, wanted)), "")


def _words(line: str) -> str:
    """Return a line with `#` in the place of its numbers."""
    return _NUMBER.sub("#", " ".join(line.split()))


def tells(line: str) -> bool:
    """Return whether a line has a number that not every output has."""
    return not _VARIES.search(line) and any(map(_is_rare, _NUMBER.findall(line)))


def _is_rare(number: str) -> bool:
    digits = re.sub(r"\D", "", number.lower().partition("e")[0]).strip("0")
    return "n" in number.lower() or len(digits) >= _FEWEST_DIGITS or number.startswith("-")


def _agree(one: str, other: str) -> bool:
    """Return whether two lines with the same words have the same numbers, within the digits that are shown."""
    return all(map(_is_equal, _NUMBER.findall(one), _NUMBER.findall(other)))


def _is_equal(one: str, other: str) -> bool:
    first, second = float(one), float(other)
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    digits = max(_decimals(text) for text in (one, other))
    if digits == 0:
        return first == second
    return math.isclose(first, second, rel_tol=_RELATIVE, abs_tol=10.0 ** -min(map(_decimals, (one, other))) / 2)


def _decimals(number: str) -> int:
    mantissa, _, exponent = number.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))
