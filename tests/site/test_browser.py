"""The site in Chromium: every page in both themes and widths, the filters, and the matcher's answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from repros.engine.catalogue import load
from repros.match import match_log
from repros.match.json_format import match_to_json
from repros.match.log import decode_lines
from repros.site.build import build
from repros.site.matcher import PYODIDE
from repros.site.search import MINISEARCH
from repros.site.source import Source
from tests.match.golden_logs import read_golden_logs
from tests.site.browser import axe_source, chromium, downloaded, serve

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

THEMES = ("light", "dark")
WIDTHS = (360, 390, 1280)
SERIOUS = {"serious", "critical"}
EVERY = 8
"""One in so many of the failures' pages, which have one template, is given to axe."""
PHONE = {"width": 390, "height": 844}
MOST_NODES, MOST_PAINT_MS, MOST_SHIFT = 3_500, 2_000, 0.1
MATCH_SECONDS = 60
GOLDEN = [*read_golden_logs()]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def folder(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    downloaded(PYODIDE)
    downloaded(MINISEARCH)
    made = tmp_path_factory.mktemp("whole")
    build(source, made)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serve(folder) as served:
        yield served


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def watch(page: Any) -> list[str]:
    """Return a list to which every error of a page is added."""
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: problems.append(str(error)))

    def add_failure(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the next page was opened before this one was complete
            problems.append(f"{request.url}: {request.failure}")

    page.on("requestfailed", add_failure)
    return problems


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_page(browser: Any, folder: Path, address: str, theme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    problems = watch(page)
    found = []
    for file in sorted(folder.rglob("*.html")):
        name = file.relative_to(folder).as_posix()
        page.goto(address + name)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{name} is wider than the window")
        found += [f"{name}: {problem}" for problem in problems]
        problems.clear()
    context.close()
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious(browser: Any, folder: Path, address: str, theme: str, width: int) -> None:
    axe = axe_source()
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    found = []
    for file in [*sorted(folder.glob("*.html")), *sorted(folder.glob("failures/*.html"))[::EVERY]]:
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


def shown(page: Any) -> list[str]:
    page.wait_for_selector("#failures[aria-busy=false]", state="attached")
    return list(page.evaluate("[...document.querySelectorAll('#failures > :not([hidden])')].map(row => row.id)"))


@pytest.mark.parametrize("name", ["index.html", "matrix.html"])
def test_the_lists_filter_and_search(page: Any, address: str, source: Source, name: str) -> None:
    problems = watch(page)
    page.goto(address + name)
    assert shown(page) == [repro.id for repro in source.catalogue]
    page.select_option("#silent", "yes")
    silent = [repro.id for repro in source.catalogue if repro.silent]
    assert shown(page) == silent
    page.select_option("#package", "lightning")
    both = [repro.id for repro in source.catalogue if repro.silent and "lightning" in repro.packages]
    assert shown(page) == both
    page.reload()  # the address keeps the choice
    assert shown(page) == both
    page.goto(f"{address}{name}?q=no+backend+type&stack=2023-12")
    assert set(shown(page)) == {"RPR-0001", "RPR-0019", "RPR-0020"}
    message = (
        "[rank1]: RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:3 "
        "and cuda:0! (when checking argument for argument mat1 in method wrapper_CUDA_addmm)"
    )
    page.fill("#q", message)
    assert shown(page)[0] == "RPR-0002"
    page.fill("#q", "zebra crossings of Abbey Road")
    assert shown(page) == []
    assert page.is_visible("#none")
    page.fill("#q", "")
    page.select_option("#stack", "")
    assert shown(page) == [repro.id for repro in source.catalogue]
    assert problems == []


def test_the_index_is_sorted(page: Any, address: str, source: Source) -> None:
    page.goto(f"{address}index.html")
    page.select_option("#sort", "reports")
    by_reports = sorted(source.catalogue, key=lambda repro: -len(repro.upstream.reports))
    assert shown(page) == [repro.id for repro in by_reports]
    page.select_option("#sort", "severity")
    silent = {repro.id for repro in source.catalogue if repro.silent}
    hang = {repro.id for repro in source.catalogue if repro.failing.signature.ends}
    found = shown(page)
    assert set(found[: len(silent)]) == silent
    assert set(found[len(silent) : len(silent | hang)]) == hang - silent
    page.reload()
    assert shown(page) == found
    page.select_option("#sort", "")
    assert shown(page) == [repro.id for repro in source.catalogue]


def test_the_legend_is_above_the_rows_and_each_square_has_a_mark(page: Any, address: str, source: Source) -> None:
    page.goto(f"{address}index.html")
    assert shown(page)
    legend, rows = (page.locator(selector).bounding_box() for selector in (".legend", "#failures"))
    assert legend["y"] + legend["height"] <= rows["y"]
    marks = page.evaluate("[...document.querySelectorAll('.squares i')].map(e => e.className + e.textContent)")
    assert len(marks) == len(source.catalogue.repros) * len(source.stacks)
    assert set(marks) <= {"f✕", "c✓", "d≠", "n·"}


def test_the_heat_map_of_160_failures_is_whole(browser: Any, many: Source, tmp_path: Path) -> None:
    downloaded(PYODIDE)
    build(many, tmp_path / "site")
    cut = """[...document.querySelectorAll('.heat th, .heat td, .heat .name')].filter(part =>
        part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow === 'hidden'
        || part.getBoundingClientRect().right > innerWidth
        || part.getBoundingClientRect().left < 0).map(part => part.textContent)"""
    with serve(tmp_path / "site") as address:
        for width in (360, 390, 800, 1280):
            context = browser.new_context(viewport={"width": width, "height": 900})
            page = context.new_page()
            page.goto(f"{address}matrix.html")
            assert len(shown(page)) == 160
            assert page.evaluate(cut) == [], width
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            # The stacks' names stay in sight.
            page.evaluate("document.querySelector('#failures > :nth-child(120)').scrollIntoView()")
            top, head = (page.locator(selector).bounding_box() for selector in (".top", ".heat thead"))
            assert top["y"] + top["height"] - 4 <= head["y"] <= top["y"] + top["height"], width
            page.fill("#q", "batchnorm")
            assert 0 < len(shown(page)) < 20
            page.goto(f"{address}index.html")
            assert len(shown(page)) == 160
            assert page.evaluate("document.querySelectorAll('*').length") < 30 * 160
            context.close()


def test_on_a_phone_the_fix_is_on_the_first_screen(browser: Any, address: str, source: Source) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    low = {}
    for repro in source.catalogue:
        page.goto(f"{address}failures/{repro.id}.html")
        fix, diff = (page.locator(selector).bounding_box()["y"] for selector in ("#fix", "#diff pre"))
        low |= {repro.id: (fix, diff)} if fix > 500 or diff > PHONE["height"] else {}
    context.close()
    assert low == {}


def test_the_index_is_light(page: Any, address: str) -> None:
    page.goto(f"{address}index.html")
    page.evaluate(
        "() => { globalThis.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(one =>"
        " { globalThis.shift += one.value; })).observe({type: 'layout-shift', buffered: true}); }"
    )
    page.wait_for_timeout(500)
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < MOST_PAINT_MS
    assert page.evaluate("globalThis.shift") < MOST_SHIFT


def answer(page: Any, log: str) -> Any:
    return json.loads(page.evaluate("async log => JSON.stringify(await globalThis.reprosMatch(log))", log))


def test_the_matcher_answers_as_the_command(page: Any, address: str) -> None:
    page.set_default_timeout(MATCH_SECONDS * 1000)
    problems = watch(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    page.goto(f"{address}match.html")
    catalogue = load()
    answer(page, GOLDEN[0].text)
    asked.clear()
    for log in GOLDEN:
        expected = json.loads(
            json.dumps(match_to_json(match_log(decode_lines(log.text.encode(), "the log"), catalogue)))
        )
        assert answer(page, log.text) == expected, log.name
    assert asked == [], "the log must not leave the page"
    assert problems == []


def test_the_page_shows_an_answer_and_works_offline_afterwards(page: Any, address: str) -> None:
    page.set_default_timeout(MATCH_SECONDS * 1000)
    page.goto(f"{address}match.html?log=RPR-0002")
    page.wait_for_selector(".candidate")
    assert "RPR-0002" in page.inner_text(".candidate h2")
    page.evaluate(
        "async () => { await navigator.serviceWorker.ready; while (!navigator.serviceWorker.controller)"
        " await new Promise(done => setTimeout(done, 50)); }"
    )
    page.context.set_offline(True)
    page.goto(f"{address}match.html")
    page.fill("#log", "RuntimeError: No backend type associated with device type cpu")
    page.click("#go")
    page.wait_for_selector(".candidate")
    page.click(".candidate h2 a")
    page.wait_for_selector("#works")
    page.context.set_offline(False)


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
