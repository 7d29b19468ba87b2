"""The patterns of `--good` and `--bad` in a program's output: a text, or a number within a tolerance."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from repros.model.errors import ReprosError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_END = r"(?!\w|\.\d)"
"""End of a number, so `2.0` does not match in `2.0.9`."""
_PATTERN = re.compile(rf"(?P<before>|.*[\s:=])(?P<number>{_NUMBER})", re.DOTALL)
_ROUNDING = 1e-9
"""Relative rounding error between two numbers that are written alike."""


@dataclass(frozen=True)
class Pattern:
    """A text; if it ends with a number, any number within the tolerance matches."""

    text: str
    """As the user gave it: `nan`, `0.31`, `loss 2.0`."""
    before: str = ""
    """The words before the number."""
    number: float | None = None
    tolerance: float = 0.0
    """Largest difference from the number that matches."""

    def is_in(self, output: str) -> bool:
        """Return whether an output contains it."""
        if self.number is None:
            return self.text in output
        return any(self._is_near(float(number)) for number in self._pattern.findall(output))

    def overlaps(self, other: Pattern) -> bool:
        """Return whether some output would always match both patterns."""
        if self.number is None or other.number is None:
            texts = (self.text in other.text, other.text in self.text)
            return any(texts) and self.number is other.number
        if self.before.split() != other.before.split():
            return False
        return abs(self.number - other.number) <= self.tolerance + other.tolerance + _ROUNDING

    def _is_near(self, number: float) -> bool:
        assert self.number is not None
        return abs(number - self.number) <= self.tolerance + _ROUNDING * max(1.0, abs(self.number))

    @property
    def _pattern(self) -> re.Pattern[str]:
        words = r"\s+".join(map(re.escape, self.before.split()))
        return re.compile(rf"{words}[\s:=]*({_NUMBER}){_END}" if words else rf"(?<![\w.])({_NUMBER}){_END}")


@dataclass(frozen=True)
class Patterns:
    """The two behaviours to distinguish; without patterns, they are distinguished by how a program ends."""

    good: Pattern | None = None
    bad: Pattern | None = None

    @property
    def decide(self) -> bool:
        """Whether an output that matches neither pattern gives no answer."""
        return self.good is not None and self.bad is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of outputs that match one of them."""
        return tuple(f"{word} {pattern.text!r}" for word, pattern in self._named)

    def found_in(self, output: str) -> tuple[str, ...]:
        """Return the labels of those that an output matches."""
        return tuple(
            label for label, (_, pattern) in zip(self.labels, self._named, strict=True) if pattern.is_in(output)
        )

    @property
    def _named(self) -> list[tuple[str, Pattern]]:
        return [(word, pattern) for word, pattern in (("good", self.good), ("bad", self.bad)) if pattern is not None]


def parse_patterns(good: str | None, bad: str | None, tolerance: float | None = None) -> Patterns:
    """Return the patterns of the options.

    Args:
        good: the text or number of the good behaviour; None for no pattern.
        bad: that of the bad behaviour.
        tolerance: largest difference from the number; None: half a unit of its last decimal, so `0.31` matches 0.305
            to 0.315, and a whole number only itself.

    Raises:
        ReprosError: one is empty, there is no number for the tolerance, or one output could match both.
    """
    for word, text in (("good", good), ("bad", bad)):
        if text is not None and not text.strip():
            raise ReprosError(f"--{word} is empty; expected a text or a number that the program prints.")
    patterns = Patterns(*(None if text is None else _parse(text, tolerance) for text in (good, bad)))
    if tolerance is not None and all(
        pattern is None or pattern.number is None for pattern in (patterns.good, patterns.bad)
    ):
        raise ReprosError("--tolerance needs a number at the end of --good or --bad, such as --bad 'loss 0.31'.")
    if patterns.good is not None and patterns.bad is not None and patterns.good.overlaps(patterns.bad):
        problem = f"an output may hold --good {good!r} and --bad {bad!r} at once; expected two that exclude each other."
        raise ReprosError(problem)
    return patterns


def _parse(text: str, tolerance: float | None) -> Pattern:
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        return Pattern(text)
    exponent = Decimal(match["number"]).as_tuple().exponent
    decimals = 0.5 * 10.0**exponent if isinstance(exponent, int) and exponent < 0 else 0.0
    before = match["before"].rstrip(" \t\n:=")
    return Pattern(text, before, float(match["number"]), decimals if tolerance is None else tolerance)
