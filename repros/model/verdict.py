"""What an observation means, and the record of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from repros.model.cell import Cell
from repros.model.observation import Observation


class Category(StrEnum):
    """How a reader should take a verdict."""

    AGREES = "agrees"
    NEWS = "news"
    TROUBLE = "trouble"
    SKIP = "skip"


class Verdict(StrEnum):
    """What an observation means against what the repro documents for that environment."""

    REPRODUCED = "reproduced"
    """Expected to fail, and the documented signature was seen."""
    CLEAN = "clean"
    """Expected to pass, and it returned."""
    GONE = "gone"
    """Expected to fail, but it returned: fixed upstream, or the range is stale."""
    REGRESSED = "regressed"
    """Outside the affected range, but the documented signature was seen."""
    UNFIXED = "unfixed"
    """A fix that shows the documented signature: it does not fix."""
    DIFFERENT = "different"
    """Some other failure; never merged with `gone` or `reproduced`."""
    FLAKY = "flaky"
    """Repeated, it did not always end the same way."""
    UNAVAILABLE = "unavailable"
    """Not run, and the reason is known."""
    INFRA = "infra"
    """Could not be judged: disk, port, memory, or the engine itself; never changes what is known."""

    @property
    def category(self) -> Category:
        """How a reader should take it."""
        return _CATEGORIES[self]


_CATEGORIES = {
    Verdict.REPRODUCED: Category.AGREES,
    Verdict.CLEAN: Category.AGREES,
    Verdict.GONE: Category.NEWS,
    Verdict.REGRESSED: Category.NEWS,
    Verdict.UNFIXED: Category.TROUBLE,
    Verdict.DIFFERENT: Category.TROUBLE,
    Verdict.FLAKY: Category.TROUBLE,
    Verdict.UNAVAILABLE: Category.SKIP,
    Verdict.INFRA: Category.SKIP,
}


@dataclass(frozen=True)
class Repeats:
    """How often a cell was run, and how often it ended as its result says."""

    n: int
    agreeing: int
    """Runs with the same verdict and signature; those that could not be judged are not among them."""

    def __str__(self) -> str:
        """Return `19/20`."""
        return f"{self.agreeing}/{self.n}"


@dataclass(frozen=True)
class Result:
    """A cell, its verdict and the evidence."""

    cell: Cell
    verdict: Verdict
    reason: str
    """One sentence: why this verdict."""
    signature: str | None = None
    """The root cause as observed, normalised: `RuntimeError: ...`; None when nothing failed."""
    observation: Observation | None = None
    """None for a cell that was not run; of several runs, the first that ended as the result says, or for a flaky one
    the first that ended otherwise than most."""
    repeats: Repeats | None = None
    """None for a cell that was not repeated."""
