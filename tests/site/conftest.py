"""The built site, once for each process of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.site.build import Place, build
from repros.site.source import Source, read_source

PLACE = Place("https://example.org/repros", "https://example.org/source")


@pytest.fixture(scope="session")
def source() -> Source:
    return read_source()


@pytest.fixture(scope="session")
def site(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the matcher, which needs npm."""
    folder = tmp_path_factory.mktemp("site")
    build(source, folder, PLACE, matcher=False)
    return folder
