"""Each rule, broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.authoring.check.rules import RULES, CheckedScript, find_unnamed_alternatives
from repros.authoring.new.template import remove_comments, write_script
from repros.engine import header
from repros.engine.catalogue import load

TEMPLATE = [
    "line 8: replace the template's text 'ORGANISATION/REPOSITORY'",
    "line 22: replace the template's text 'what this variant does, in one line'",
    "line 27: replace the template's text 'what it does differently'",
    "line 28: replace the template's text 'ORGANISATION/REPOSITORY'",
    "line 36: replace the template's text 'What the user does, in one sentence'",
    "line 38: replace the template's text 'What the user sees, with the text of the error'",
    "line 40: replace the template's text 'Which call does what, and since which release'",
    "line 42: replace the template's text 'What to do instead, and since which release'",
]


def broken(path: Path) -> list[str]:
    script = CheckedScript(header.read(path))
    return [sentence for rule in RULES for sentence in rule(script)]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write_script(tmp_path, "family", "it_breaks")


def test_the_template_is_not_finished(script: Path) -> None:
    assert broken(script) == TEMPLATE


def test_the_comments_of_the_template_go_and_others_stay(script: Path) -> None:
    text = script.read_text().replace("# silent = true", "# minimum = 1  # one GPU shows it\n# silent = true")
    script.write_text(text)
    assert remove_comments(script)
    assert "# minimum = 1  # one GPU shows it\n" in script.read_text()
    assert script.read_text().count("  # ") == 1
    assert not remove_comments(script)


EXISTS = '# exists = ["{}"]\n# exists_source = "https://a.b"\n# home'


CHANGES = (
    ('title = "It breaks"', 'title = "It breaks."'),
    ("Symptom: What", "What"),
    ("def fixed(", "def other("),
    ("\n\nVARIANTS", "\nx = 1" * 81 + "\n\nVARIANTS"),
    ('match = "expected 4.0, got 3.0"', 'match = "expected"'),
    ('about = "what it does differently"', 'about = "adds."'),
    (
        "# [tool.repro.variants.fixed]",
        '# [tool.repro.variants.no]\n# outcome="fails"\n# about="x"\n# claim="y"\n# [tool.repro.variants.fixed]',
    ),
    ('home = "current"', 'home = "currant"'),
    ('dependencies = ["torch>=2.0"]', 'dependencies = ["torch<2.0"]'),
    ("# home", '# affected = ["lightning<3"]\n# home'),
    ("# home", "# processes = 1\n# home"),
    ('# about = "what it does differently"', '# outcome = "passes"\n# about = "adds"'),
    ("# home", EXISTS.format("numpy>=2")),
    ("# home", EXISTS.format("no torch<9")),
    ("# home", EXISTS.format("torch<2")),
    ('strategy="auto"', 'strategy="ddp"'),
)
"""Texts of the template, and others that break a rule."""


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_a_broken_rule_is_found(script: Path, before: str, after: str) -> None:
    text = script.read_text()
    assert before in text
    unfinished = broken(script)
    assert [problem for problem in broken_text(script, text.replace(before, after)) if problem not in unfinished]


def test_text(script: Path, snapshot: SnapshotAssertion) -> None:
    """What to do about each broken rule, without the lines of the template that are unfinished anyway."""
    text, shown = script.read_text(), []
    for before, after in CHANGES:
        problems = [
            problem for problem in broken_text(script, text.replace(before, after)) if "template" not in problem
        ]
        shown += [f"{problem}\n" for problem in problems]
    stacks = re.sub(r"expected one of .*", "expected one of STACKS", "".join(shown))
    assert snapshot == re.sub(r"has torch \S+", "has torch PIN", stacks)


def broken_text(script: Path, text: str) -> list[str]:
    script.write_text(text)
    return broken(script)


def test_an_alternative_must_be_named(tmp_path: Path) -> None:
    for slug in ("one", "two"):
        path = write_script(tmp_path, "family", slug)
        path.write_text(path.read_text().replace("# silent = true", "# silent = false"))
    catalogue = load([tmp_path])
    first, second = catalogue
    (problem,) = find_unnamed_alternatives(first, catalogue)
    assert problem.startswith(f"{second.id} ")
