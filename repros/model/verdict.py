"""Verdicts, and results: a cell with its verdict and observation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from repros.model.cell import Cell
from repros.model.observation import Observation


class Category(StrEnum):
    """The relation of a verdict to the documentation of its repro."""

    AGREES = "agrees"
    NEWS = "news"
    TROUBLE = "trouble"
    SKIPPED = "skipped"
    NOT_JUDGED = "not judged"


class Verdict(StrEnum):
    """An observation compared with what the repro documents for that environment."""

    REPRODUCED = "reproduced"
    """Expected to fail, and showed the documented signature."""
    CLEAN = "clean"
    """Expected to pass, and returned."""
    GONE = "gone"
    """Expected to fail, but returned: fixed upstream, or the range is stale."""
    REGRESSED = "regressed"
    """Outside the affected range, but showed the documented signature."""
    UNFIXED = "unfixed"
    """A fix that shows the documented signature, so it does not work."""
    DIFFERENT = "different"
    """Another failure; never merged with `gone` or `reproduced`."""
    FLAKY = "flaky"
    """Repeated runs ended differently."""
    UNAVAILABLE = "unavailable"
    """Not run, for a known reason."""
    INFRA = "infra"
    """Not judged because of disk, port, memory or the engine itself; never changes evidence."""

    @property
    def category(self) -> Category:
        """The relation to what is documented."""
        return _CATEGORIES[self]

    @property
    def shows_failure(self) -> bool:
        """Whether the cell showed the documented failure, expected or not."""
        return self in {Verdict.REPRODUCED, Verdict.REGRESSED, Verdict.UNFIXED}

    @property
    def ran_clean(self) -> bool:
        """Whether the cell ran to completion, expected or not."""
        return self in {Verdict.CLEAN, Verdict.GONE}

    @property
    def disagrees(self) -> bool:
        """Whether the cell ran and its verdict does not agree with what is documented."""
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
    """Number of runs of a cell, and of those with the same verdict and signature."""

    n: int
    agreeing: int
    """Runs with the result's verdict and signature; runs that could not be judged do not count."""

    def __str__(self) -> str:
        """Return `19/20`."""
        return f"{self.agreeing}/{self.n}"


@dataclass(frozen=True)
class CellResult:
    """A cell with its verdict, signature and observation."""

    cell: Cell
    verdict: Verdict
    reason: str
    """The reason for the verdict, one sentence."""
    signature: str | None = None
    """The root cause as observed, normalised: `RuntimeError: ...`; None when nothing failed."""
    observation: Observation | None = None
    """None if not run. Of repeated runs, the first with this verdict and signature; for a flaky cell, the first that
    differs from the majority."""
    repeats: Repeats | None = None
    """None for a single run."""
