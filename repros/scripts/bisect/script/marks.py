"""What a user looks for in a program's output: a text, or a number within a tolerance; `--good` and `--bad`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from repros.model.errors import ReprosError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BEHIND = r"(?!\w|\.\d)"
"""What ends a number: `2.0` is none of the numbers in `2.0.9`."""
_MARK = re.compile(rf"(?P<before>|.*[\s:=])(?P<number>{_NUMBER})", re.DOTALL)
_ROUNDING = 1e-9
"""Of the difference between two numbers that are written alike."""


@dataclass(frozen=True)
class Mark:
    """A text to look for; if it ends with a number, any number near it will do."""

    text: str
    """As the user gave it: `nan`, `0.31`, `loss 2.0`."""
    before: str = ""
    """Of a number: the words before it."""
    number: float | None = None
    tolerance: float = 0.0
    """How far a number may be from it."""

    def is_in(self, output: str) -> bool:
        """Return whether an output holds it."""
        if self.number is None:
            return self.text in output
        return any(self._is_near(float(found)) for found in self._pattern.findall(output))

    def overlaps(self, other: Mark) -> bool:
        """Return whether some output that holds one of two marks always holds the other, too."""
        if self.number is None or other.number is None:
            texts = (self.text in other.text, other.text in self.text)
            return any(texts) and self.number is other.number
        if self.before.split() != other.before.split():
            return False
        return abs(self.number - other.number) <= self.tolerance + other.tolerance + _ROUNDING

    def _is_near(self, found: float) -> bool:
        assert self.number is not None
        return abs(found - self.number) <= self.tolerance + _ROUNDING * max(1.0, abs(self.number))

    @property
    def _pattern(self) -> re.Pattern[str]:
        words = r"\s+".join(map(re.escape, self.before.split()))
        return re.compile(rf"{words}[\s:=]*({_NUMBER}){_BEHIND}" if words else rf"(?<![\w.])({_NUMBER}){_BEHIND}")


@dataclass(frozen=True)
class Marks:
    """The two things to tell apart; without any, a program's ending tells."""

    good: Mark | None = None
    bad: Mark | None = None

    @property
    def decide(self) -> bool:
        """Whether a program that prints neither gives no answer."""
        return self.good is not None and self.bad is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """What a program shows that prints one of them."""
        return tuple(f"{word} {mark.text!r}" for word, mark in self._named)

    def found_in(self, output: str) -> tuple[str, ...]:
        """Return the labels of those that an output holds."""
        return tuple(label for label, (_, mark) in zip(self.labels, self._named, strict=True) if mark.is_in(output))

    @property
    def _named(self) -> list[tuple[str, Mark]]:
        return [(word, mark) for word, mark in (("good", self.good), ("bad", self.bad)) if mark is not None]


def parse_marks(good: str | None, bad: str | None, tolerance: float | None = None) -> Marks:
    """Return the marks that a user gave.

    Args:
        good: the text or number of the one behaviour; None to take any.
        bad: that of the other.
        tolerance: how far a number may be from the one given; None: half a unit of its last decimal, so that `0.31`
            stands for 0.305 to 0.315, and a whole number for itself alone.

    Raises:
        ReprosError: one is empty, there is no number for the tolerance, or one output would hold both.
    """
    for word, text in (("good", good), ("bad", bad)):
        if text is not None and not text.strip():
            raise ReprosError(f"--{word} is empty; expected a text or a number that the program prints.")
    marks = Marks(*(None if text is None else _parse(text, tolerance) for text in (good, bad)))
    if tolerance is not None and all(mark is None or mark.number is None for mark in (marks.good, marks.bad)):
        raise ReprosError("--tolerance needs a number at the end of --good or --bad, such as --bad 'loss 0.31'.")
    if marks.good is not None and marks.bad is not None and marks.good.overlaps(marks.bad):
        problem = f"an output may hold --good {good!r} and --bad {bad!r} at once; expected two that exclude each other."
        raise ReprosError(problem)
    return marks


def _parse(text: str, tolerance: float | None) -> Mark:
    found = _MARK.fullmatch(text.strip())
    if found is None:
        return Mark(text)
    exponent = Decimal(found["number"]).as_tuple().exponent
    decimals = 0.5 * 10.0**exponent if isinstance(exponent, int) and exponent < 0 else 0.0
    before = found["before"].rstrip(" \t\n:=")
    return Mark(text, before, float(found["number"]), decimals if tolerance is None else tolerance)
