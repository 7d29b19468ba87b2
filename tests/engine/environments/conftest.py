"""Fixture for a tiny stack."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pytest

from repros.model.stack import Size, Stack
from tests.tiny_stack import MakeStack, write_wheel


@pytest.fixture
def make_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeStack:
    """Return a function that writes a stack of the named distributions, cached in the test's own folder."""
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)

    def make(*names: str, lock: str = "", unpacked: int = 1_500_000) -> Stack:
        for name in names:
            write_wheel(tmp_path, name)
        file = tmp_path / "tiny.lock.txt"
        pins = "".join(f"{name}==1.0\n" for name in names)
        file.write_text(f"--no-index\n--find-links {tmp_path}\n{pins}{lock}", encoding="utf-8")
        return Stack(
            name="tiny",
            about="for tests",
            python=f"{sys.version_info.major}.{sys.version_info.minor}",
            requirements=(),
            until=dt.date(2026, 1, 1),
            lock=file,
            cuda=Size(download=2_700_000_000, unpacked=unpacked),
            cpu=Size(download=300_000_000, unpacked=unpacked),
        )

    return make
