"""The message families: their tables, and the messages of public threads that they explain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter

import pytest

from repros.diagnose.match.find import find_failures
from repros.diagnose.match.log import decode_lines
from repros.diagnose.messages import Explanation, MessageFamily, explain, load_families
from repros.diagnose.messages.api_changes import WORDS
from repros.diagnose.messages.derived import DERIVATIONS
from repros.diagnose.messages.family import required_literal
from tests.diagnose.messages.family_logs import read_logs

FAMILIES = load_families()
LOGS = read_logs()


def explained(text: str) -> tuple[Explanation, ...]:
    log = decode_lines(text.encode())
    failures, _ = find_failures(log)
    return explain(failures, log, FAMILIES)


def test_a_family_has_a_name_of_its_own() -> None:
    names = [family.name for family in FAMILIES]
    assert sorted(set(names)) == sorted(names)


def test_each_family_explains_a_public_message() -> None:
    assert {family.name for family in FAMILIES} - {log.family for log in LOGS} == set()


def test_each_fact_has_a_word_of_the_message() -> None:
    # Else it is shown for the messages of all patterns.
    assert [(family.name, fact) for family in FAMILIES for fact in family.facts if "{" not in fact] == []


def test_families_explain_a_public_messages_that_they_were_not_written_from() -> None:
    unseen = {log.family for log in LOGS if not log.written_from}
    assert len(unseen) >= 25


def test_each_public_message_is_explained_by_its_family_alone() -> None:
    found = [[one.family.name for one in explained(log.message) if one.family] for log in LOGS]
    wrong = [(log.source, names) for log, names in zip(LOGS, found, strict=True) if names != [log.family]]
    assert wrong == []


def test_the_literal_of_a_pattern_is_in_every_message_of_it() -> None:
    families = {family.name: family for family in FAMILIES}
    wrong = []
    for log in LOGS:
        pairs = zip(families[log.family].patterns, families[log.family].literals, strict=True)
        found = [literal for pattern, literal in pairs if re.search(pattern, log.message)]
        if not found or any(literal not in log.message for literal in found):
            wrong.append((log.source, found))
    assert wrong == []


def test_every_pattern_has_a_literal() -> None:
    # Else each log compiles the pattern.
    short = [(family.name, literal) for family in FAMILIES for literal in family.literals if len(literal) < 6]
    assert short == []


def test_a_text_has_only_words_of_its_family() -> None:
    wrong = []
    for family in FAMILIES:
        patterns = (*family.patterns, *family.log)
        derived = DERIVATIONS[family.name].words if family.name in DERIVATIONS else ()
        changed = WORDS if family.area == "names" else ()
        groups = {"script", *derived, *changed}.union(*(re.compile(text).groupindex for text in patterns))
        words = {name for text in texts(family) for _, name, _, _ in Formatter().parse(text) if name is not None}
        conditions = {cause.when for cause in family.causes}
        wrong += [(family.name, name) for name in (words - groups) | (conditions - {"", *groups})]
    assert wrong == []


def test_a_derivation_is_for_a_family() -> None:
    assert DERIVATIONS.keys() <= {family.name for family in FAMILIES}


def texts(family: MessageFamily) -> Iterator[str]:
    yield from (*family.facts, *family.next)
    for cause in family.causes:
        yield from (cause.text, cause.fix, cause.check)


def test_each_cause_is_from_a_public_thread() -> None:
    assert [(family.name, cause.text) for family in FAMILIES for cause in family.causes if not cause.threads] == []


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"is_available\(\) is False", "is_available() is False"),
        (r"shapes? \((?P<a>\d+)x(?P<b>\d+) and (?P<c>\d+)\)", "shape"),
        (r"a\.b[.]cd", "a.b"),
        (r"one|another", ""),
        (r"\[(?P<shape>[\d, ]*)\]\] is at version", "]] is at version"),
        (r"loss+es", "loss"),
        (r"(?:a|b)c{2}def", "def"),
        (r"x \d+ long enough", " long enough"),
    ],
)
def test_the_literal_of_a_pattern(pattern: str, literal: str) -> None:
    assert required_literal(pattern) == literal
