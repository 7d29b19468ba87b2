"""Affected releases: the conditions of a header's `affected`, over any number of packages, and their evaluation.

`affected` is a list of conditions, all of which must hold. A condition is a version range, `no` and a range, or several
of both joined by `or`:

    affected = ["lightning>=2.1,<2.4", "torch>=2.6"]
    affected = ["accelerate<1.13 or no bitsandbytes>=0.48"]
    affected = ["torch<2.11", "no lightning>=2.5.5"]

`no bitsandbytes>=0.48` holds where bitsandbytes is absent or older. An empty list: every release is affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from repros.model.packages import canonical_name, format_requirement

if TYPE_CHECKING:
    from packaging.requirements import Requirement


class Overlap(StrEnum):
    """How many of the releases that may be installed lie in a range, or meet a condition."""

    ALL = "all"
    SOME = "some"
    NONE = "none"
    UNKNOWN = "unknown"

    @property
    def opposite(self) -> Overlap:
        """The overlap of the complement."""
        return {Overlap.ALL: Overlap.NONE, Overlap.NONE: Overlap.ALL}.get(self, self)


@dataclass(frozen=True)
class Term:
    """A version range of one package, or `no` and a range."""

    requirement: Requirement
    negated: bool = False
    """Whether it holds outside the range, or without the package."""

    @property
    def package(self) -> str:
        """Canonical name of the package."""
        return canonical_name(self.requirement.name)

    def evaluate(self, compare: Compare) -> Overlap:
        """Return for how many releases the term holds."""
        overlap = compare(self)
        return overlap.opposite if self.negated else overlap

    @cached_property
    def text(self) -> str:
        """The term as a header states it."""
        return f"{'no ' if self.negated else ''}{format_requirement(self.requirement)}"

    def __str__(self) -> str:
        """Return the term as a header states it."""
        return self.text

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields and the text, which a pickled term need not make again."""
        return {**vars(self), "text": self.text}


Compare = Callable[[Term], Overlap]
"""Returns the overlap of the releases that may be installed with a term's range, ignoring its negation.

An absent package has no overlap.
"""


@dataclass(frozen=True)
class AnyOf:
    """A condition: at least one of its terms holds."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> AnyOf:
        """Return the condition that a header states.

        Raises:
            ValueError: a term has no range, or more than a range; `InvalidRequirement` is one.
        """
        return cls(tuple(map(_term, text.split(" or "))))

    @property
    def only(self) -> Requirement | None:
        """The range, if it is the only term and not negated; otherwise None."""
        return self.terms[0].requirement if len(self.terms) == 1 and not self.terms[0].negated else None

    def evaluate(self, compare: Compare) -> Overlap:
        """Return for how many releases the condition holds."""
        return any_overlap(term.evaluate(compare) for term in self.terms)

    def __str__(self) -> str:
        """Return the condition as a header states it."""
        return " or ".join(map(str, self.terms))


def evaluate(conditions: Iterable[AnyOf], compare: Compare) -> Overlap:
    """Return for how many of the releases that may be installed all conditions hold."""
    return all_overlap(condition.evaluate(compare) for condition in conditions)


def all_overlap(overlaps: Iterable[Overlap]) -> Overlap:
    """Return the overlap of a conjunction: one false condition decides, whatever is unknown."""
    return _first(overlaps, Overlap.NONE, Overlap.UNKNOWN, Overlap.SOME) or Overlap.ALL


def any_overlap(overlaps: Iterable[Overlap]) -> Overlap:
    """Return the overlap of a disjunction: one true alternative decides, whatever is unknown."""
    return _first(overlaps, Overlap.ALL, Overlap.SOME, Overlap.UNKNOWN) or Overlap.NONE


def packages_of(conditions: Iterable[AnyOf]) -> tuple[str, ...]:
    """Return the canonical names of the distinct packages in the conditions, in order."""
    return tuple(dict.fromkeys(term.package for condition in conditions for term in condition.terms))


def affected_text(conditions: Sequence[AnyOf | str], packages: Iterable[str] = (), *, quote: str = "") -> str:
    """Return the affected releases on one line: `lightning!=2.4.*,!=2.5.* and torch>=2.6`.

    Args:
        conditions: all of them must hold; none: every release is affected.
        packages: the packages that contain the failure.
        quote: encloses each condition, such as a backtick in Markdown.
    """
    if not conditions:
        return every_release_of(packages)
    texts = [f"{quote}{condition}{quote}" for condition in conditions]
    return " and ".join(f"({text})" if len(texts) > 1 and " or " in text else text for text in texts)


def every_release_of(packages: Iterable[str]) -> str:
    """Return `every release of torch, lightning`: the range of a failure without an unaffected release."""
    names = ", ".join(packages)
    return f"every release of {names}" if names else "every release"


def _first(overlaps: Iterable[Overlap], *order: Overlap) -> Overlap | None:
    distinct = set(overlaps)
    return next((value for value in order if value in distinct), None)


def _term(text: str) -> Term:
    from packaging.requirements import Requirement  # noqa: PLC0415 - kept conditions are not parsed again

    bare = text.strip()
    negated = bare.startswith("no ")
    requirement = Requirement(bare.removeprefix("no "))
    if not requirement.specifier or requirement.url or requirement.marker or requirement.extras:
        raise ValueError(text)
    return Term(requirement, negated)
