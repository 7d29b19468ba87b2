"""`repros stacks`: names, sizes, and which are ready."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repros import environments
from tests.cli.command import Command, lines_over


def test_stacks(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ready", lambda stack: stack.name == "current")
    monkeypatch.setattr(environments, "place", lambda stack: Path(f"/cache/{stack.name}"))
    code, out, _ = repros("stacks")
    assert code == 0
    assert out.startswith("2023-05\n  torch 2.0, which leaves")
    assert "  not made yet: 2.3 GB to download, 4.5 GB on disk\n2023-12\n" in out
    assert out.endswith("  ready in /cache/current\n")


def test_as_json(repros: Command) -> None:
    current = next(stack for stack in json.loads(repros("stacks", "--json")[1]) if stack["name"] == "current")
    assert current.keys() == {"name", "about", "python", "requirements", "until", "cuda", "cpu", "ready"}


def test_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert lines_over(60, repros("stacks")[1]) == []
