"""The facts of a family: each says what the pattern that matched has found, and nothing of the others."""

from __future__ import annotations

import re

from repros.diagnose.messages.family import load_families


def test_facts_of_several_patterns_are_told_by_a_group_of_their_own() -> None:
    """A fact without a group, or with a group of every pattern, would be said whichever pattern has matched."""
    for family in load_families():
        if len(family.patterns) < 2 or len(family.facts) < 2:
            continue
        groups = [{*re.compile(pattern).groupindex} for pattern in family.patterns]
        said = [fact for fact in family.facts if all(fact_groups(fact) <= own for own in groups)]
        assert len(said) < 2, f"{family.name}: {said}"


def fact_groups(fact: str) -> set[str]:
    """Return the names in braces."""
    return {part.partition("}")[0] for part in fact.split("{")[1:]}
