"""Each rule, broken: the sentence says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('title = "It breaks"', 'title = "It breaks."', "shorten title to one sentence of at most 100 characters"),
        ("Symptom: What", "What", "begin three paragraphs of the docstring with 'Symptom:', 'Cause:' and 'Fix:'"),
        ("def fixed(", "def other(", "define the failing and the fixed code under these names"),
        ("\n\nVARIANTS", "\nx = 1" * 81 + "\n\nVARIANTS", "shorten the code below the docstring from"),
        (
            'match = "expected 4.0, got 3.0"',
            'match = "expected"',
            "match = 'expected': quote the wrong value after 'got'",
        ),
        ('about = "what it does differently"', 'about = "adds."', "write about of variant fixed as one line"),
        (
            "# [tool.repro.variants.fixed]",
            '# [tool.repro.variants.no]\n# outcome="fails"\n# about="x"\n# claim="y"\n# [tool.repro.variants.fixed]',
            "add source to variant no: the address of its claim",
        ),
        ('home = "current"', 'home = "currant"', "home = 'currant': expected one of 2023-05,"),
        (
            'dependencies = ["torch>=2.0"]',
            'dependencies = ["torch<2.0"]',
            "choose another home: torch<2.0 does not hold",
        ),
        ("# home", '# affected = ["lightning<3"]\n# home', "add lightning to dependencies, or remove it"),
        ("# home", "# processes = 1\n# home", "remove processes from [tool.repro]: it is the default"),
        (
            '# about = "what it does differently"',
            '# outcome = "passes"\n# about = "adds"',
            "remove outcome from [tool.repro.variants.fixed]: it is the default",
        ),
        ("# home", EXISTS.format("numpy>=2"), "remove numpy from exists, or add it to packages"),
        ("# home", EXISTS.format("no torch<9"), "write exists = 'no torch<9' without 'no'"),
        ("# home", EXISTS.format("torch<2"), "choose another home: torch<2 does not hold"),
        ('strategy="auto"', 'strategy="ddp"', "give main these defaults: variant='failing', a strategy out of auto"),
    ],
)
def test_a_broken_rule_says_what_to_do(script: Path, before: str, after: str, sentence: str) -> None:
    text = script.read_text()
    assert before in text
    changed = text.replace(before, after)
    assert [problem for problem in broken_text(script, changed) if problem.startswith(sentence)]


def broken_text(script: Path, text: str) -> list[str]:
    script.write_text(text)
    return broken(script)


def test_an_alternative_must_be_named(tmp_path: Path) -> None:
    for slug in ("one", "two"):
        path = write_script(tmp_path, "family", slug)
        path.write_text(path.read_text().replace("# silent = true", "# silent = false"))
    catalogue = load([tmp_path])
    first, second = catalogue
    assert list(find_unnamed_alternatives(first, catalogue)) == [
        f"{second.id} has the same message: after 'Fix:' add a paragraph 'Apart:' that names it and the difference"
    ]
