"""What the text of an issue states, read once for all parts of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from repros.diagnose.issue import Issue, read_issue
from repros.diagnose.issue.arithmetic import find_arithmetic
from repros.diagnose.issue.conditions import Conditions, contradicts, read_conditions
from repros.diagnose.issue.crash import Crash, find_crash, is_of_result, says_crash
from repros.diagnose.issue.facts import HasFact, Weighed, fact_for_left_alone, fact_reader, weigh
from repros.diagnose.issue.hypothesis import Hypothesis, find_hypothesis
from repros.diagnose.issue.issue import MESSAGE
from repros.diagnose.issue.numbers import Finding, find_numbers
from repros.diagnose.issue.pair import Pair, find_pair
from repros.diagnose.issue.settings import find_contradictions
from repros.diagnose.issue.symptoms import ReportedSymptom, Symptom, find_symptom, possible_causes
from repros.diagnose.messages import PossibleCause
from repros.diagnose.messages.family import Cause
from repros.scripts.triage.kind import Document

_LONG_WORD = re.compile(r"[a-z]{6,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
_CONTRAST = re.compile(
    r"\b(?:works|worked|(?:does|do|will|would|can) work|is (?:fine|right|correct)|are (?:fine|right|correct)"
    r"|passe[sd]|(?:do|does|did)(?:n't| not) "
    r"(?:happen|occur|fail|crash|hang)|only (?:if|when|with|for|in)|without (?:it|this|the)\b.{0,60}\b(?:works?"
    r"|fine|runs?))\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a sentence about a run that does not fail."""
_STEM = 7
"""Letters by which `evaluation` and `evaluates` are the same word."""
_COMMON = frozenset(
    word[:_STEM]
    for word in re.findall(
        r"\w+",
        """training trained trainer tensor tensors during another before process processes number different should
        version versions release library python pytorch default message return returns errors failed problem""",
    )
)
"""Words that any report has."""


@dataclass(frozen=True)
class Report:
    """An issue, and its whole text."""

    text: str

    @classmethod
    def of(cls, document: Document) -> Report:
        """Return the report in a document."""
        return cls(document.raw.decode("utf-8", "replace"))

    @cached_property
    def issue(self) -> Issue:
        """What it states."""
        return read_issue(self.text)

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions of the run."""
        return read_conditions(self.issue, self.text)

    @cached_property
    def crash(self) -> Crash | None:
        """The crash that it reports without its error."""
        return find_crash(self.issue, self.text)

    @cached_property
    def is_crash(self) -> bool:
        """Whether its words are those of a program that ends in an error."""
        return says_crash(self.issue) or (self.crash is not None and not is_of_result(self.issue))

    @cached_property
    def symptom(self) -> ReportedSymptom | None:
        """The symptom that its words report."""
        return find_symptom(self.issue, self.has_fact, self.conditions.excludes, is_crash=self.is_crash)

    @cached_property
    def pair(self) -> Pair | None:
        """The two sides that it compares."""
        return find_pair(self.issue, is_crash=bool(self.issue.failures or self.crash))

    @cached_property
    def hypothesis(self) -> Hypothesis | None:
        """What it takes for the cause."""
        return find_hypothesis(self.issue)

    @property
    def source(self) -> str:
        """Its script; empty without one."""
        return self.issue.code.source if self.issue.code else ""

    @cached_property
    def numbers(self) -> list[Finding]:
        """What its numbers say."""
        return find_numbers(self.issue, self.text)

    @cached_property
    def settings(self) -> list[Finding]:
        """What its commands and settings say, and what follows from its numbers."""
        return [*find_contradictions(self.issue, self.text), *find_arithmetic(self.issue, self.text)]

    @property
    def decided(self) -> Finding | None:
        """What its numbers or its settings decide; None if they decide nothing."""
        both = (*self.settings, *self.numbers) if self.is_crash else (*self.numbers, *self.settings)
        return next((finding for finding in both if finding.title), None)

    @property
    def computed(self) -> str:
        """What follows from its settings and decides nothing alone; empty without any."""
        return "; ".join(finding.text for finding in self.settings if not finding.title)

    @cached_property
    def contrast(self) -> str:
        """The sentence that says with what it fails and with what not; empty if there is none."""
        sentences = _SENTENCE.split(self.issue.seen)
        return next((" ".join(text.split()) for text in sentences if _CONTRAST.search(text)), "")

    def raises(self, words: str) -> bool:
        """Return whether a message with some words has an exception's class in front of it."""
        return any(words in found["message"] for found in MESSAGE.finditer(self.text))

    @cached_property
    def has_fact(self) -> HasFact:
        """The function that says whether it states a fact, by its name."""
        return fact_reader(
            self.issue, self.text, lambda: frozenset(finding.name for finding in (*self.numbers, *self.settings))
        )

    def weigh(self, symptom: Symptom) -> Weighed:
        """Return the causes of a symptom that the report leaves, and those that it excludes.

        Those that a fact favours come first, then those of which the report names something, then those that fit its
        begin, then the others in the order in which public threads have them.
        """
        named, others = possible_causes(symptom, self.issue)
        ordered = sorted((*named, *others), key=lambda cause: not self.conditions.favours(cause.text))
        weighed = weigh(ordered, self.has_fact)
        return replace(weighed, possible=tuple(filter(self._is_possible, weighed.possible)))

    def _is_possible(self, cause: Cause) -> bool:
        """Return whether neither the conditions of the run nor its numbers exclude a cause."""
        conditions, text = self.conditions, f"{cause.text} {cause.fix}"
        facts = {finding.name for finding in self.numbers}
        return not (conditions.excludes(text) or conditions.lacks_needed(cause.text) or contradicts(cause.text, facts))

    def weigh_family(self, causes: Sequence[PossibleCause]) -> Weighed:
        """Return the causes of an error that the report leaves, and those that it excludes."""
        weighed = weigh([cause.cause for cause in causes], self.has_fact)
        likely = {one.cause for one in causes if one.is_likely}
        left = (cause for cause in weighed.possible if cause in likely or self._is_possible(cause))
        return replace(weighed, possible=tuple(left))

    def fact_for_left_alone(self, causes: Sequence[PossibleCause]) -> str:
        """Return what the report states for the only cause of an error that it leaves; empty if it leaves several."""
        return fact_for_left_alone(self.weigh_family(causes), self.has_fact)

    def order(self, causes: Sequence[PossibleCause], message: str) -> list[PossibleCause]:
        """Return the causes that the report does not exclude; those of which its prose names something come first.

        Args:
            causes: those of the error's family.
            message: the error, whose own words decide nothing.
        """
        left = self.weigh_family(causes).possible
        kept = [one for one in causes if one.cause in left]
        words = _stems(f"{self.issue.title}\n{self.issue.seen}") - _stems(message)

        def rank(cause: PossibleCause) -> tuple[bool, bool, bool, int]:
            text = _words_of(cause)
            is_favoured = any(map(self.has_fact, cause.cause.favoured_by))
            return not cause.is_likely, not is_favoured, not self.conditions.favours(text), -len(words & _stems(text))

        return sorted(kept, key=rank)


def _words_of(cause: PossibleCause) -> str:
    return f"{cause.cause.text} {cause.cause.fix}"


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _LONG_WORD.findall(text.lower())) - _COMMON
