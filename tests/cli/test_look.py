"""`repros list`, `repros show` and `repros stacks`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repros import environments
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
    assert out.startswith("2023-05\n  torch 2.0, which leaves")
    assert "  not here yet: 2.3 GB to download, 4.5 GB on disk\n2023-12\n" in out
    assert out.endswith("  ready in /cache/current\n")


def test_list_of_a_kind(repros: Command) -> None:
    def ids(*words: str) -> list[str]:
        code, out, _ = repros("list", "--json", *words)
        assert code == 0
        return [one["id"] for one in json.loads(out)]

    every = ids()
    fabric = ids("--family", "fabric")
    assert "RPR-0005" in fabric
    assert fabric == [one for one in every if one in fabric]
    assert len(fabric) < len(every)
    assert "RPR-0004" in ids("--strategy", "fused_adamw")
    assert "RPR-0001" not in ids("--silent", "--package", "lightning")
    assert "RPR-0005" in ids("--silent", "--package", "lightning")
    assert set(ids("--family", "fabric", "--family", "ddp")) > set(fabric)
    assert ids("--family", "fabric", "--strategy", "fused_adamw") == []
    assert repros("list", "--family", "fabric", "--strategy", "fused_adamw")[1] == "no documented failure fits\n"


def test_for_machines(repros: Command) -> None:
    (brief,) = json.loads(repros("list", "--json", "--catalogue", RAISES)[1])
    full = json.loads(repros("show", "raises", "--json", "--catalogue", RAISES)[1])
    assert brief == {
        "id": "RPR-9001",
        "slug": "raises",
        "family": "toys",
        "title": "A plain exception",
        "silent": False,
        "packages": ["torch"],
        "affected": [],
        "strategies": ["plain"],
        "devices": ["cpu"],
        "home": "current",
        "upstream": ["https://example.org/toys/9001"],
    }
    assert full.items() > brief.items()
    assert (full["variants"][0]["name"], full["variants"][0]["raises"]) == ("failing", "ValueError")
    current = next(stack for stack in json.loads(repros("stacks", "--json")[1]) if stack["name"] == "current")
    assert current.keys() == {"name", "about", "python", "requirements", "until", "cuda", "cpu", "ready"}


def test_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert repros("list", "--family", "fabric")[1].startswith(
        """\
RPR-0005 Calling a submodule of a Fabric module skips
         gradient synchronisation
         fabric/submodule_call_skips_gradient_sync
         ddp, ddp_spawn on cpu, cuda
         silent: a wrong result without an error
"""
    )
    for words in (("list",), ("stacks",)):
        assert [line for line in repros(*words)[1].splitlines() if len(line) > 60 and " " in line.strip()] == []
