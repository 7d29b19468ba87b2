"""The site in Chromium: every page in both themes and all widths, and the matcher's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repros.diagnose.match import match_log
from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.match.log import decode_lines
from repros.diagnose.messages import explain
from repros.diagnose.messages.json_format import explanations_to_json
from tests.diagnose.match.golden_logs import read_golden_logs
from tests.package_catalogue import load_index
from tests.tools.site.browser import axe_source, watch
from tools.site.source import Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LOOKS = [(theme, width) for theme in ("light", "dark") for width in (360, 390, 1280)]
SERIOUS = {"serious", "critical"}
AXE_LOOKS = [("light", 1280), ("dark", 390)]
"""Each theme and each layout once: there axe is given all its pages, half a second each, and a sixth elsewhere."""
EVERY = 8
"""Step between the failures' pages that axe checks; they have one template."""
EVERY_LOG = 12
"""Step between the golden logs that are matched on the page, which takes ten times as long as the command."""
PHONE = {"width": 390, "height": 844}
MATCH_SECONDS = 60
GOLDEN = [*read_golden_logs()]


@pytest.fixture
def everything(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--all-cells"))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_page(browser: Any, folder: Path, address: str, theme: str, width: int, *, everything: bool) -> None:
    """A failure's page, of which all have one template, is opened in one look; with `--all-cells` in each."""
    failures = sorted(folder.glob("failures/*.html"))
    others = sorted({*folder.rglob("*.html")} - {*failures})
    share = failures if everything else failures[LOOKS.index((theme, width)) :: len(LOOKS)]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    problems = watch(page)
    found = []
    for file in [*others, *share]:
        name = file.relative_to(folder).as_posix()
        page.goto(address + name)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name} is wider than the window")
        found += [f"{name}: {problem}" for problem in problems]
        problems.clear()
    context.close()
    assert found == [], "\n".join(found)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_axe_finds_nothing_serious(
    browser: Any, folder: Path, address: str, theme: str, width: int, *, everything: bool
) -> None:
    pages = [*sorted(folder.glob("*.html")), *sorted(folder.glob("failures/*.html"))[::EVERY]]
    whole = everything or (theme, width) in AXE_LOOKS
    axe = axe_source()
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    found = []
    for file in pages if whole else pages[LOOKS.index((theme, width)) :: len(LOOKS)]:
        name = file.relative_to(folder).as_posix()
        page.goto(address + name)
        page.evaluate(axe)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [
            f"{name}: {violation['id']} at {violation['nodes'][0]['target']}, {violation['nodes'][0]['failureSummary']}"
            for violation in result["violations"]
            if violation["impact"] in SERIOUS
        ]
    context.close()
    assert found == [], "\n".join(found)


def test_the_theme_is_kept(page: Any, address: str) -> None:
    page.goto(f"{address}index.html")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.goto(f"{address}matrix.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_on_a_phone_the_fix_is_on_the_first_screen(browser: Any, address: str, source: Source) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    low: dict[str, tuple[float, float]] = {}
    for repro in source.catalogue:
        page.goto(f"{address}failures/{repro.id}.html")
        fix, diff = (page.locator(selector).bounding_box()["y"] for selector in ("#fix", "#diff pre"))
        low |= {repro.id: (fix, diff)} if fix > 500 or diff > PHONE["height"] else {}
    context.close()
    assert low == {}


def answer(page: Any, log: str) -> Any:
    return json.loads(page.evaluate("async log => JSON.stringify(await globalThis.reprosMatch(log))", log))


def test_the_matcher_answers_as_the_command(page: Any, address: str, *, everything: bool) -> None:
    page.set_default_timeout(MATCH_SECONDS * 1000)
    problems = watch(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    page.goto(f"{address}match.html")
    index = load_index()
    answer(page, GOLDEN[0].text)
    asked.clear()
    for log in GOLDEN if everything else GOLDEN[::EVERY_LOG]:
        lines = decode_lines(log.text.encode(), "the log")
        found = match_log(lines, index)
        explained = {} if found.candidates else explanations_to_json(explain(found.failures, lines))
        expected = json.loads(json.dumps(match_to_json(found) | explained))
        assert answer(page, log.text) == expected, log.name
    assert asked == [], "the log must not leave the page"
    assert problems == []


def test_the_page_shows_an_answer_and_the_way_to_its_failure(page: Any, address: str) -> None:
    page.set_default_timeout(MATCH_SECONDS * 1000)
    page.goto(f"{address}match.html?log=RPR-0002")
    page.wait_for_selector(".candidate")
    assert "RPR-0002" in page.inner_text(".candidate h2")
    page.click(".candidate h2 a")
    page.wait_for_selector("#works")


def test_the_policy_keeps_a_log_on_the_page(page: Any, address: str) -> None:
    page.goto(f"{address}match.html")
    for attempt in (
        "fetch('https://example.org/', {method: 'POST', body: 'log'})",
        "fetch('http://127.0.0.1:1/', {method: 'POST', body: 'log'})",
    ):
        refused = page.evaluate(
            "code => new Promise(done => { document.addEventListener('securitypolicyviolation',"
            " event => done(event.effectiveDirective), {once: true}); " + attempt + ".catch(() => {}); })",
            "",
        )
        assert refused == "connect-src"
    problems = watch(page)
    page.evaluate("() => { const image = new Image(); image.src = 'https://example.org/?log'; }")
    page.wait_for_timeout(200)
    assert any("img-src" in problem for problem in problems)


def test_an_empty_log_gets_the_sentence_of_the_command(page: Any, address: str) -> None:
    page.set_default_timeout(MATCH_SECONDS * 1000)
    page.goto(f"{address}match.html")
    page.click("#go")
    page.wait_for_selector("#state:has-text('the log is empty')")
