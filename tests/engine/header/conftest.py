"""Fixtures for the tests of headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.header.scripts import HERE


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / HERE
