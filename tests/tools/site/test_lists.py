"""The index and the heat map in Chromium: search, filters, orders, and a catalogue of 160."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.site.browser import downloaded, serve, watch
from tools.site.build import build
from tools.site.matcher import PYODIDE
from tools.site.overview import overview
from tools.site.search import MINISEARCH
from tools.site.source import Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NODES_OF_EACH, MOST_PAINT_MS, MOST_SHIFT = 30, 2_000, 0.1


def shown(page: Any) -> list[str]:
    """Return the ids of all rows: also those after the first 25, and those of the heat map without a change."""
    page.wait_for_selector("#failures[aria-busy=false]", state="attached")
    if page.locator("#constant").count():
        if not page.is_visible("#constant"):  # the filters are folded on a phone
            page.click("#choices > summary")
        page.check("#constant")
    if page.is_visible("#all"):
        page.click("#all")
    page.wait_for_timeout(50)
    page.wait_for_selector("#failures[aria-busy=false]", state="attached")
    return list(page.evaluate("[...document.querySelectorAll('#failures > :not([hidden])')].map(row => row.id)"))


@pytest.mark.parametrize("name", ["index.html", "matrix.html"])
def test_the_lists_filter_and_search(page: Any, address: str, source: Source, name: str) -> None:
    problems = watch(page)
    page.goto(address + name)
    ordered = [row["repro"] for row in overview(source)["rows" if name == "index.html" else "heat"]]
    assert shown(page) == [repro.id for repro in ordered]
    page.select_option("#silent", "yes")
    silent = [repro.id for repro in ordered if repro.silent]
    assert shown(page) == silent
    page.select_option("#package", "lightning")
    both = [repro.id for repro in ordered if repro.silent and "lightning" in repro.packages]
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
    assert shown(page) == [repro.id for repro in ordered]
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
    page.select_option("#sort", "id")
    assert shown(page) == [repro.id for repro in source.catalogue]
    page.select_option("#sort", "")
    assert shown(page) == [repro.id for repro in by_reports], "the default"


def test_a_phone_has_the_first_result_on_its_first_screen_and_25_at_a_time(browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{address}index.html")
    page.wait_for_selector("#failures[aria-busy=false]", state="attached")
    rows = page.locator("#failures > :not([hidden])")
    assert rows.count() == 25
    assert rows.first.bounding_box()["y"] < 844 - 40
    page.click("#more")
    page.wait_for_function("document.querySelectorAll('#failures > :not([hidden])').length === 50")
    assert not page.is_visible("#package"), "the filters are folded"
    page.click("#choices > summary")
    assert page.is_visible("#package")
    context.close()


def test_a_message_that_no_failure_has_is_handed_to_the_matcher(page: Any, address: str) -> None:
    page.goto(f"{address}index.html")
    message = "Target size (torch.Size([32])) must be the same as input size (torch.Size([32, 1]))"
    page.fill("#q", message)
    page.wait_for_selector("#near:not([hidden])")
    assert page.inner_text("#shared").startswith("None has this message; these share words: ")
    page.fill("#q", "RuntimeError: No backend type associated with device type cpu")
    page.wait_for_selector("#near", state="hidden")
    page.fill("#q", message)
    page.click("#read")
    page.wait_for_url("**/match.html")
    assert page.input_value("#log") == message


def test_the_heat_map_begins_with_what_changes(page: Any, address: str, source: Source) -> None:
    page.goto(f"{address}matrix.html")
    page.wait_for_selector("#failures[aria-busy=false]", state="attached")
    seen = page.evaluate(
        "[...document.querySelectorAll('#failures > :not([hidden])')].map(row =>"
        " new Set([...row.querySelectorAll('td')].map(cell => cell.className).filter(name => name !== 'n')).size)"
    )
    assert 10 < len(seen) < len(source.catalogue.repros) / 2
    assert min(seen) > 1


def test_the_legend_is_above_the_rows_and_each_square_has_a_mark(page: Any, address: str, source: Source) -> None:
    page.goto(f"{address}index.html")
    assert shown(page)
    page.click(".squares-note > summary")
    legend, rows = (page.locator(selector).bounding_box() for selector in (".legend", "#failures"))
    assert legend["y"] + legend["height"] <= rows["y"]
    marks = page.evaluate("[...document.querySelectorAll('.squares i')].map(e => e.className + e.textContent)")
    assert len(marks) == len(source.catalogue.repros) * len(source.stacks)
    assert set(marks) <= {"f✕", "c✓", "d≠", "n·"}


def test_the_heat_map_of_160_failures_is_whole(browser: Any, many: Source, tmp_path: Path) -> None:
    for package in (PYODIDE, MINISEARCH):
        downloaded(package)
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
            # The stacks' names stay visible.
            page.evaluate("document.querySelector('#failures > :nth-child(120)').scrollIntoView()")
            top, head = (page.locator(selector).bounding_box() for selector in (".top", ".heat thead"))
            assert top["y"] + top["height"] - 4 <= head["y"] <= top["y"] + top["height"], width
            page.fill("#q", "batchnorm")
            assert 0 < len(shown(page)) < 20
            page.goto(f"{address}index.html")
            assert len(shown(page)) == 160
            assert page.evaluate("document.querySelectorAll('*').length") < NODES_OF_EACH * 160
            context.close()


def test_the_index_is_light(page: Any, address: str) -> None:
    page.goto(f"{address}index.html")
    page.evaluate(
        "() => { globalThis.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(one =>"
        " { globalThis.shift += one.value; })).observe({type: 'layout-shift', buffered: true}); }"
    )
    page.wait_for_timeout(500)
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < MOST_PAINT_MS
    assert page.evaluate("globalThis.shift") < MOST_SHIFT
    assert page.evaluate("document.querySelectorAll('*').length") < NODES_OF_EACH * len(shown(page))
