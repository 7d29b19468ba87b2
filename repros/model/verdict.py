"""Verdicts: what an observation means; and results: a cell with its verdict and evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from repros.model.cell import Cell
from repros.model.observation import Observation


class Category(StrEnum):
    """What a verdict means for what is documented."""

    AGREES = "agrees"
    NEWS = "news"
    TROUBLE = "trouble"
    SKIPPED = "skipped"
    NOT_JUDGED = "not judged"


class Verdict(StrEnum):
    """What an observation means, compared with what the repro documents for that environment."""

    REPRODUCED = "reproduced"
    """Expected to fail, and the documented signature was seen."""
    CLEAN = "clean"
    """Expected to pass, and it returned."""
    GONE = "gone"
    """Expected to fail, but it returned: fixed upstream, or the range is stale."""
    REGRESSED = "regressed"
    """Outside the affected range, but the documented signature was seen."""
    UNFIXED = "unfixed"
    """A fix that shows the documented signature: it does not work."""
    DIFFERENT = "different"
    """Some other failure; never merged with `gone` or `reproduced`."""
    FLAKY = "flaky"
    """Repeated runs did not all end the same way."""
    UNAVAILABLE = "unavailable"
    """Not run, and the reason is known."""
    INFRA = "infra"
    """Could not be judged because of disk, port, memory or the engine itself; never changes evidence."""

    @property
    def category(self) -> Category:
        """What it means for what is documented."""
        return _CATEGORIES[self]

    @property
    def shows_failure(self) -> bool:
        """Whether the documented failure was seen, expected or not."""
        return self in {Verdict.REPRODUCED, Verdict.REGRESSED, Verdict.UNFIXED}

    @property
    def ran_clean(self) -> bool:
        """Whether the cell ran to its end, expected or not."""
        return self in {Verdict.CLEAN, Verdict.GONE}

    @property
    def disagrees(self) -> bool:
        """Whether the cell was run and its verdict does not agree with what is documented."""
        return self.category not in {Category.AGREES, Category.SKIPPED}


_CATEGORIES = {
    Verdict.REPRODUCED: Category.AGREES,
    Verdict.CLEAN: Category.AGREES,
    Verdict.GONE: Category.NEWS,
    Verdict.REGRESSED: Category.NEWS,
    Verdict.UNFIXED: Category.TROUBLE,
    Verdict.DIFFERENT: Category.TROUBLE,
    Verdict.FLAKY: Category.TROUBLE,
    Verdict.UNAVAILABLE: Category.SKIPPED,
    Verdict.INFRA: Category.NOT_JUDGED,
}


@dataclass(frozen=True)
class Repeats:
    """How often a cell was run, and how often with the same outcome."""

    n: int
    agreeing: int
    """Runs with the result's verdict and signature; runs that could not be judged do not count."""

    def __str__(self) -> str:
        """Return `19/20`."""
        return f"{self.agreeing}/{self.n}"


@dataclass(frozen=True)
class CellResult:
    """A cell, its verdict and the evidence."""

    cell: Cell
    verdict: Verdict
    reason: str
    """One sentence: why this verdict."""
    signature: str | None = None
    """The root cause as observed, normalised: `RuntimeError: ...`; None when nothing failed."""
    observation: Observation | None = None
    """None for a cell that was not run. Of several runs: the first with the result's verdict and signature, or for a
    flaky cell the first that differs from most."""
    repeats: Repeats | None = None
    """None for a cell that was run once."""
