"""The statements of the founding articles: each is answered by what is in the catalogue, and by what was measured."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.model import Device, ExpectedOutcome, Verdict
from tests import factories
from tests.package_catalogue import load
from tools.docs.articles import Article, Item, articles_table, measured_outcome, missing_answers, read_articles

ARTICLES = read_articles()


def test_every_statement_has_an_answer() -> None:
    assert list(missing_answers(ARTICLES, load())) == []


def test_the_five_are_those_of_the_first_failures() -> None:
    assert [article.repro for article in ARTICLES] == [f"RPR-000{number}" for number in range(1, 6)]
    assert all(article.source.startswith("https://") for article in ARTICLES)
    assert {item.kind for article in ARTICLES for item in article.items} == {"cause", "solution", "practice"}


def toy(verdict: Verdict, stack: str, variant: str = "failing") -> Evidence:
    unit = Unit(stack, "RPR-0001", Device.CPU, "ddp")
    seen = {variant: VariantVerdict(verdict)}
    return {unit: Measurement(unit, "", dt.date(2026, 1, 1), "warm", "Linux", "3.11.7", {}, 2, 1.0, seen)}


REPRO = factories.repro(path=Path("/x/catalogue/toys/one.py"), variants=(factories.variant(),))


def test_an_answer_that_nobody_gives_is_named() -> None:
    items = (Item("cause", "A", ("RPR-0001/failing", "repros audit"), "right"), Item("practice", "B", (), ""))
    articles = (Article("RPR-0001", "https://a.b", (*items, Item("solution", "C", ("RPR-0001/gone",), ""))),)
    assert missing_answers(articles, [REPRO]) == ["RPR-0001: B", "RPR-0001/gone"]


def test_the_table_says_what_was_measured() -> None:
    article = Article("RPR-0001", "https://a.b", (Item("cause", "A", ("RPR-0001/failing", "repros audit"), "right"),))
    evidence = toy(Verdict.REPRODUCED, "a") | toy(Verdict.REGRESSED, "b") | toy(Verdict.CLEAN, "c")
    assert articles_table([article], [REPRO], evidence, "../") == (
        "## [A toy](https://a.b)\n\n"
        "| | The article says | Found | Answered by |\n| --- | --- | --- | --- |\n"
        "| Cause | A | right | [RPR-0001 `failing`](../repros/catalogue/toys/one.py): fails on 2 stacks, "
        "runs on 1 stack; [`repros audit`](usage.md) |\n"
    )


@pytest.mark.parametrize("verdict", [Verdict.DIFFERENT, Verdict.FLAKY])
def test_what_decides_nothing_is_not_counted(verdict: Verdict) -> None:
    fixed = factories.variant("fixed", ExpectedOutcome.PASSES)
    assert measured_outcome(REPRO, fixed, toy(verdict, "a", "fixed")) == "documented: works"
