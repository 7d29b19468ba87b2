"""The expressions that read an issue, on long lines without a sentence: each comes to an end."""

from __future__ import annotations

import base64
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping

import pytest

import repros.diagnose.issue
from repros.diagnose.issue import crash, hypothesis, pair_words, read_issue, settings
from repros.diagnose.issue.crash import find_crash
from repros.diagnose.issue.hypothesis import find_hypothesis
from repros.diagnose.issue.pair import find_pair
from repros.diagnose.issue.settings import find_contradictions

MODULES = [module.name for module in pkgutil.iter_modules(repros.diagnose.issue.__path__)]
LINES = {
    "letters": "a" * 5_000,
    "path": "some-folder.d/" * 350,
    "names": "_a.b" * 1_250,
    "base64": base64.b64encode(bytes(range(250)) * 15).decode(),
}
SHORT = {"path": "/" + "a" * 200, "name": "test" + "_a_long_name" * 25}
"""Lines that a report may have; expressions with several repetitions need years for them, not seconds."""


def expressions_in(value: object) -> Iterator[re.Pattern[str]]:
    """Yield the expressions that a module's variable has."""
    if isinstance(value, re.Pattern):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ():
        yield from expressions_in(part)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("module", MODULES)
def test_an_expression_ends_on_a_long_line(module: str, line: str) -> None:
    variables = vars(importlib.import_module(f"repros.diagnose.issue.{module}"))
    for expression in expressions_in([*variables.values()]):
        assert sum(len(found[0]) for found in expression.finditer(LINES[line])) <= len(LINES[line])


@pytest.mark.parametrize(
    "expression",
    [crash._CHAIN, settings._MODE, hypothesis._PLACE, hypothesis._CODE, re.compile(pair_words._OFF)],
    ids=["chain", "mode", "place", "code", "off"],
)
def test_an_expression_takes_linear_time(expression: re.Pattern[str]) -> None:
    """In a time that is quadratic, half a million characters would take longer than any limit of a test."""
    assert expression.search("a" * 500_000) is None
    assert expression.search("a/" * 250_000) is None


@pytest.mark.parametrize("line", [*LINES.values(), *SHORT.values()], ids=[*LINES, *(f"short {name}" for name in SHORT)])
def test_a_report_with_a_long_line_is_read(line: str) -> None:
    text = f"# Training fails\n\n{line}\n\nThe same script with {line} fails. It works with {line}=0, without {line}.\n"
    issue = read_issue(text)
    assert issue.title == "Training fails"
    find_pair(issue, is_crash=False)
    find_hypothesis(issue)
    find_crash(issue, text)
    find_contradictions(issue, text)
