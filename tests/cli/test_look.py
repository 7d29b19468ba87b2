"""`repros list`, `repros show` and `repros stacks`."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.stacks import environments
from tests.cli.conftest import RAISES, Command


def test_list(repros: Command) -> None:
    code, out, err = repros("list", "--catalogue", RAISES)
    assert (code, err) == (0, "")
    assert out == "RPR-9001 A plain exception\n         toys/raises\n         plain on cpu\n         not measured yet\n"


def test_list_in_markdown(repros: Command) -> None:
    _, out, _ = repros("list", "--catalogue", RAISES, "--markdown")
    assert out.splitlines()[2].startswith(
        "| [RPR-9001](repros/catalogue/toys/raises.py) | A plain exception | every release"
    )


def test_show_by_id_or_slug(repros: Command) -> None:
    code, out, _ = repros("show", "rpr-9001", "--catalogue", RAISES)
    assert code == 0
    assert out.startswith("RPR-9001 A plain exception\naffects   every release of torch; exact on stack current\n")
    assert repros("show", "raises", "--catalogue", RAISES)[1] == out


def test_stacks(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ready", lambda stack: stack.name == "current")
    monkeypatch.setattr(environments, "place", lambda stack: Path(f"/cache/{stack.name}"))
    code, out, _ = repros("stacks")
    assert code == 0
    assert out.startswith("2023-05\n  torch 2.0, before")
    assert "  not here yet: 2.3 GB to download, 4.5 GB on disk\n2023-12\n" in out
    assert out.endswith("  ready in /cache/current\n")
