"""Fixtures: a stack of two wheels, made without a network, and a question about one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.bisect.question import Question, build_question
from repros.engine.plan import CellSpec
from repros.model import Stack
from tests.bisect.tiny_question import RELEASES, surroundings, write_spec, write_stack


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for name, value in surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    return write_stack(tmp_path)


@pytest.fixture
def spec(tmp_path: Path) -> CellSpec:
    return write_spec(tmp_path)


@pytest.fixture
def question(spec: CellSpec, tiny: Stack) -> Question:
    return build_question(spec, tiny, "tinylib", RELEASES, None, None)
