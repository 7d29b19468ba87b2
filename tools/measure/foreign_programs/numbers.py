"""The numbers that a program prints, by the words before them, and how those of two runs compare."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|nan|inf)(?![\w.]*\d|\w)", re.IGNORECASE)
"""A number with a decimal point or an exponent; counts, versions and devices are none."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_WORD = re.compile(r"[A-Za-z_@/]+")
_TIMES = frozenset(
    {
        *("time", "times", "elapsed", "eta", "s", "ms", "sec", "second", "seconds", "speed", "duration", "runtime"),
        *("throughput", "mfu", "took", "latency", "tflops", "data", "memory", "mem", "allocated", "mb", "gb"),
    }
)
"""Parts of names of times, and of what depends on them or on the device."""
_UNITS = re.compile(r"\s*(?:s|secs?|seconds?|ms|us|min|minutes|h|it/s|s/it|\w*/s\w*|[KMGT]i?B)\b")

CLOSE = 1e-3
"""The largest difference between close numbers, as a part of the largest number of that name."""


@dataclass(frozen=True)
class ComparedNumbers:
    """How the numbers of a run compare with those of the same program's run on the CPU."""

    outcome: str
    """`equal` to the last printed digit, `close`, `different`, or `no numbers`."""
    compared: int
    """How many numbers of the CPU's run were compared."""
    difference: float = 0.0
    """The largest difference, as a part of the largest number of that name."""
    where: tuple[str, ...] = ()
    """The names whose numbers are not equal."""


def numbers(text: str) -> dict[str, list[str]]:
    """Return the numbers that a text shows, as printed, by the last word before each; times and memory are left out.

    What a carriage return lets a terminal overwrite is left out, too.
    """
    found: dict[str, list[str]] = {}
    for line in _COLOUR.sub("", text).replace("\r\n", "\n").split("\n"):
        for match in _NUMBER.finditer(shown := next(filter(str.strip, reversed(line.split("\r"))), "")):
            before = _WORD.findall(_NUMBER.sub(" ", shown[: match.start()]))
            name = before[-1].lower() if before else ""
            if _TIMES.isdisjoint(re.split("[_/]", name)) and not _UNITS.match(shown, match.end()):
                found.setdefault(name, []).append(match[0].lower())
    return found


def compare(here: Mapping[str, Sequence[str]], cpu: Mapping[str, Sequence[str]], *, in_order: bool) -> ComparedNumbers:
    """Compare a run's numbers with those of the CPU's run; names that the CPU's run does not print are left out.

    Args:
        here: the run's numbers.
        cpu: the numbers of the run on the CPU.
        in_order: whether they are printed in the program's order, which several processes do not keep.
    """
    total = sum(len(values) for values in cpu.values())
    if not total:
        return ComparedNumbers("no numbers", 0)
    unequal = tuple(name for name, values in cpu.items() if not _same(here.get(name, ()), values, in_order))
    if not unequal:
        return ComparedNumbers("equal", total)
    if any(len(here.get(name, ())) != len(cpu[name]) for name in unequal):
        return ComparedNumbers("different", total, math.inf, unequal)
    largest = max(_difference(here[name], cpu[name], in_order) for name in unequal)
    return ComparedNumbers("close" if largest <= CLOSE else "different", total, largest, unequal)


def _same(one: Iterable[str], other: Iterable[str], in_order: bool) -> bool:
    return list(one) == list(other) if in_order else sorted(one) == sorted(other)


def _difference(one: Sequence[str], other: Sequence[str], in_order: bool) -> float:
    first, second = ([float(text) for text in texts] for texts in (one, other))
    if not in_order:
        first, second = sorted(first), sorted(second)
    pairs = list(zip(first, second, strict=True))
    if any(math.isfinite(a) != math.isfinite(b) for a, b in pairs):
        return math.inf
    finite = [(a, b) for a, b in pairs if math.isfinite(a)]
    scale = max((max(abs(a), abs(b)) for a, b in finite), default=0.0)
    return max(abs(a - b) for a, b in finite) / scale if scale else 0.0
