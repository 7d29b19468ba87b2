"""The built site, once for all processes of the tests, and a page of Chromium."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repros.engine.catalogue import load
from tests.tools.site.browser import chromium, downloaded, serve
from tools.site.build import Place, build
from tools.site.matcher import PYODIDE
from tools.site.search import MINISEARCH
from tools.site.source import Source, read_source

PLACE = Place("https://example.org/repros", "https://example.org/source")


@pytest.fixture(scope="session")
def source() -> Source:
    return read_source()


@pytest.fixture(scope="session")
def build_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that builds the site into a folder of this name, or returns it where another worker has.

    Nobody writes into it.
    """
    place = tmp_path_factory.getbasetemp()
    # A worker of this very run: one whose test runs pytest hands PYTEST_XDIST_WORKER down to that.
    if hasattr(request.config, "workerinput"):
        place = place.parent

    def build_it(name: str, source: Source, of: Place, *, from_npm: bool = True) -> Path:
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / name).is_dir():
                build(source, place / f"{name}-begun", of, from_npm=from_npm)
                (place / f"{name}-begun").rename(place / name)
        return place / name

    return build_it


@pytest.fixture(scope="session")
def site(source: Source, build_once: Callable[..., Path]) -> Path:
    """The site without its search and the matcher, which need npm."""
    return build_once("site", source, PLACE, from_npm=False)


@pytest.fixture(scope="session")
def many(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A catalogue of 160: the scripts, copied under further ids, with the evidence of those that they are copies of."""
    folder = tmp_path_factory.mktemp("many")
    known = source.catalogue.repros
    origins = {f"RPR-{number + 1:04}": known[number % len(known)] for number in range(160)}
    for id_, origin in origins.items():
        text = origin.path.read_text("utf-8").replace(f'id = "{origin.id}"', f'id = "{id_}"')
        (folder / f"{origin.slug}_{id_[-4:]}.py").write_text(text, "utf-8")
    evidence = {
        replace(unit, repro=id_): measurement
        for id_, origin in origins.items()
        for unit, measurement in source.evidence.items()
        if unit.repro == origin.id
    }
    return replace(source, catalogue=load([folder]), evidence=evidence)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def folder(source: Source, build_once: Callable[..., Path]) -> Path:
    """The whole site, as it is published."""
    downloaded(PYODIDE)
    downloaded(MINISEARCH)
    return build_once("whole", source, Place())


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    with serve(folder) as served:
        yield served


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()
