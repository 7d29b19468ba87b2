"""What an issue states in words that decides between causes: the stage, the precision, what works, the adapter.

`facts.toml` and `facts_tried.toml` have the expressions of each fact. A cause names facts: those that it needs, and
those that exclude it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from repros.diagnose.issue.issue import Issue
from repros.diagnose.issue.tried import Effect, clauses_with
from repros.diagnose.messages.family import Cause
from repros.model.cache.snapshot import remember

FILES = sorted(Path(__file__).parent.glob("facts*.toml"))
_NEGATION = re.compile(
    r"(?:(?:\bnot|n't|\bnever|\bno longer|\bnor|\bwithout)"
    r"(?: (?:using|used?|running|trained|training|with|enabled?|any|an?|the|even|on|in|as|be|been)){0,3}"
    r"|\b(?:no|neither(?: of)?))[ `'\"*_]{0,3}$",
    re.IGNORECASE,
)
"""What negates the words right behind it."""
_UNUSED = re.compile(
    r"[ `'\"*_]{0,3}(?:\w+ ){0,2}(?:is|are|was|were)(?:n't| not|n\u2019t) (?:used|enabled|involved|on)\b"
    r"|[`'\"*_]{0,2} (?:is|are) (?:off|disabled)\b",
    re.IGNORECASE,
)
"""What negates the words right in front of it."""
_FAILS = re.compile(r"(?:n't|\bnot|\bnever|\bno longer) (?:work|train|run|succeed)", re.IGNORECASE)
"""What negates a statement that something works."""
_LONGEST_NEGATION = 40
HasFact = Callable[[str], bool]
"""Returns whether a report states a fact, by its name."""


@dataclass(frozen=True)
class Fact:
    """Something that a report may state."""

    says: str
    """It as a clause: `steps have run`."""
    patterns: tuple[str, ...]
    """Expressions, whatever the case."""
    unless: tuple[str, ...] = ()
    """Expressions of texts that do not state it."""
    is_anywhere: bool = False
    """Whether commands, settings and logs state it as well."""
    effect: Effect | None = None
    """If given, only clauses about a change with this effect state it."""
    denied_by: tuple[str, ...] = ()
    """Facts of the numbers of a report which say otherwise than its words."""

    def is_in(self, text: str) -> bool:
        """Return whether a text states it."""
        if self.effect:
            clauses = clauses_with(self.effect, text)
            return any(re.search(pattern, clause, re.IGNORECASE) for clause in clauses for pattern in self.patterns)
        return not _states_one(self.unless, text) and _states_one(self.patterns, text)


@dataclass(frozen=True)
class Weighed:
    """The causes of a failure, as a report leaves them."""

    possible: tuple[Cause, ...]
    """Those that the report does not exclude, the favoured ones first."""
    excluded: tuple[tuple[Cause, str], ...]
    """The others, and what the report states against each."""


def is_denied(text: str, start: int) -> bool:
    """Return whether the words right in front of a place of a text negate the words there."""
    return bool(_NEGATION.search(text[max(start - _LONGEST_NEGATION, 0) : start]))


def _states_one(expressions: Sequence[str], text: str) -> bool:
    """Return whether an expression has a match in a text that is not negated."""
    found = (re.finditer(expression, text, re.IGNORECASE) for expression in expressions)
    return any(not _is_negated(text, one) for one in chain.from_iterable(found))


def _is_negated(text: str, found: re.Match[str]) -> bool:
    """Return whether a match is negated: in itself, right in front of it or right behind it."""
    is_denied_before = is_denied(text, found.start())
    return bool(is_denied_before or _UNUSED.match(text, found.end()) or _FAILS.search(found[0]))


@cache
def load_facts() -> Mapping[str, Fact]:
    """Return the facts by their names."""
    return remember("facts", [*FILES, __file__], _read)


def _read() -> Mapping[str, Fact]:
    import tomllib  # noqa: PLC0415 - only what has changed is read

    return {
        name: Fact(
            table["says"],
            tuple(table["patterns"]),
            tuple(table.get("unless", ())),
            table.get("anywhere", False),
            Effect(table["effect"]) if "effect" in table else None,
            tuple(table.get("denied_by", ())),
        )
        for file in FILES
        for name, table in tomllib.loads(file.read_text("utf-8")).items()
    }


def fact_reader(issue: Issue, text: str, others: Callable[[], frozenset[str]]) -> HasFact:
    """Return a function that says whether an issue states a fact; each is looked for once.

    Args:
        issue: the issue.
        text: its whole text.
        others: returns the names of the facts that its numbers state.
    """
    messages = (link.raised.message for failure in issue.failures for link in failure.links)
    prose = "\n".join((issue.title, issue.seen, *messages))

    @cache
    def has(name: str) -> bool:
        fact = load_facts().get(name)
        if not fact:
            return name in others()
        return fact.is_in(text if fact.is_anywhere else prose) and not any(name in others() for name in fact.denied_by)

    return has


def weigh(causes: Sequence[Cause], has: HasFact) -> Weighed:
    """Return the causes that the facts of a report leave, and those that they exclude.

    Args:
        causes: in the order in which public threads have them.
        has: says whether the report states a fact.
    """
    against = {cause: next(filter(has, cause.excluded_by), "") for cause in causes}
    possible = [cause for cause in causes if not against[cause] and all(map(has, cause.needs))]
    excluded = [(cause, load_facts()[name].says) for cause, name in against.items() if name in load_facts()]
    return Weighed(tuple(sorted(possible, key=lambda cause: not any(map(has, cause.favoured_by)))), tuple(excluded))


def fact_for_left_alone(weighed: Weighed, has: HasFact) -> str:
    """Return what a report states for the only cause that it does not exclude; empty if it leaves several.

    Args:
        weighed: the causes.
        has: says whether the report states a fact.
    """
    if len(weighed.possible) != 1 or not weighed.excluded:
        return ""
    name = next(filter(has, weighed.possible[0].favoured_by), "")
    return load_facts()[name].says if name in load_facts() else name
