"""`repros stacks`: names, sizes, and which are ready."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from repros import environments
from repros.engine import catalogue
from repros.stacks import stack
from tests.cli.command import Command, lines_over
from tests.package_index import Serve, release_pages


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


def index_pages(**newer: dict[str, dt.date]) -> dict[str, tuple[str, bytes]]:
    """Return the pages of an index with the pins of `current` that are looked at, and these newer releases."""
    current, long_ago = stack("current"), dt.date(2026, 1, 1)
    documented = {name for repro in catalogue.load() for name in repro.packages}
    named = documented | {requirement.name for requirement in current.requirements}
    return dict(release_pages({name: {current.pins[name].version: long_ago, **newer.get(name, {})} for name in named}))


def test_nothing_is_outdated(repros: Command, serve: Serve) -> None:
    serve(index_pages())
    assert repros("stacks", "--outdated") == (0, "no package of current has a newer release\n", "")
    assert repros("stacks", "--outdated", "--json") == (0, "[]\n", "")


def test_a_release_is_overdue_after_a_month(repros: Command, serve: Serve) -> None:
    today = dt.datetime.now(dt.UTC).date()
    young, old = today - dt.timedelta(20), today - dt.timedelta(40)
    serve(index_pages(lightning={"99.0.1": young}))
    line = f"lightning 2.6.6 in current is 20 days behind 99.0.1 of {young}; the newest is 99.0.1\n"
    assert repros("stacks", "--outdated") == (0, line, "")
    serve(index_pages(lightning={"99.0.1": young}, torch={"98.0.1": old, "98.0.2": young}))
    torch = f"torch 2.15.0 in current is 40 days behind 98.0.1 of {old}; the newest is 98.0.2\n"
    assert repros("stacks", "--outdated") == (1, line + torch, "")
    code, out, _ = repros("stacks", "--outdated", "--json")
    values = {"package": "torch", "pinned": "2.15.0", "behind": "98.0.1", "since": str(old), "newest": "98.0.2"}
    assert (code, json.loads(out)[1]) == (1, {**values, "overdue": True})


def test_outdated_in_sixty_columns(repros: Command, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(index_pages(torch={"98.0.1": dt.date(2026, 11, 1)}))
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = repros("stacks", "--outdated")
    assert out.startswith("torch 2.15.0 in current is ")
    assert out.endswith("98.0.1\n")
    assert lines_over(60, out) == []


def test_outdated_without_a_network(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    code, out, err = repros("stacks", "--outdated")
    assert (code, out) == (2, "")
    assert err.startswith("repros: http://127.0.0.1:9/simple does not list the releases of accelerate with their dates")
    assert err.endswith("; name another index with PIP_INDEX_URL or UV_DEFAULT_INDEX.\n")
