"""`repros list`: whole outputs, filters, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import RAISES, Command, lines_over


def test_list(repros: Command) -> None:
    assert repros("list", "--catalogue", RAISES) == (
        0,
        "RPR-9001 A plain exception  every release of torch  not measured yet\n",
        "",
    )
    code, out, err = repros("list", "--catalogue", RAISES, "--verbose")
    assert (code, err) == (0, "")
    assert out == f"RPR-9001 A plain exception\n         {RAISES}\n         plain on cpu\n         not measured yet\n"


def test_scripts_without_a_header_are_named(repros: Command, here: Path) -> None:
    own = here / "failures" / "lightning"
    own.mkdir(parents=True)
    (own / "raises.py").write_bytes(Path(RAISES).read_bytes())
    (own / "forgotten.py").write_text('"""A script of mine."""\n')
    (own / "conftest.py").write_text("")
    code, out, err = repros("list", "--catalogue", "failures")
    assert (code, out) == (0, "RPR-9001 A plain exception  every release of torch  not measured yet\n")
    assert err == "ignored: failures/lightning/forgotten.py has no [tool.repro] header\n"
    assert repros("list")[2] == "", "the package's own scripts all have one"


def test_list_in_markdown(repros: Command) -> None:
    _, out, _ = repros("list", "--catalogue", RAISES, "--markdown")
    assert out.splitlines()[2].startswith(
        "| [RPR-9001](repros/catalogue/toys/raises.py) | A plain exception | bug | every release"
    )


def test_filters(repros: Command) -> None:
    def ids(*words: str) -> list[str]:
        code, out, _ = repros("list", "--json", *words)
        assert code == 0
        return [line["id"] for line in json.loads(out)]

    every = ids()
    fabric = ids("--family", "fabric")
    assert "RPR-0005" in fabric
    assert fabric == [id_ for id_ in every if id_ in fabric]
    assert len(fabric) < len(every)
    assert "RPR-0004" in ids("--strategy", "fused_adamw")
    assert "RPR-0001" not in ids("--silent", "--package", "lightning")
    assert "RPR-0005" in ids("--silent", "--package", "lightning")
    assert set(ids("--family", "fabric", "--family", "ddp")) > set(fabric)
    assert ids("--family", "fabric", "--strategy", "fused_adamw") == []
    kinds = {kind: ids("--kind", kind) for kind in ("bug", "by design", "misuse", "limitation")}
    assert sorted(id_ for found in kinds.values() for id_ in found) == every
    assert {"RPR-0001", "RPR-0003", "RPR-0006", "RPR-0032"} & {*kinds["misuse"]} == {"RPR-0003"}
    assert sorted(kinds["misuse"] + kinds["limitation"]) == ids("--kind", "misuse", "--kind", "limitation")
    assert repros("list", "--family", "fabric", "--strategy", "fused_adamw")[1] == "no documented failure matches\n"


def test_as_json(repros: Command) -> None:
    (summary,) = json.loads(repros("list", "--json", "--catalogue", RAISES)[1])
    assert summary == {
        "id": "RPR-9001",
        "slug": "raises",
        "family": "toys",
        "title": "A plain exception",
        "silent": False,
        "packages": ["torch"],
        "affected": [],
        "exists": [],
        "exists_source": None,
        "strategies": ["plain"],
        "devices": ["cpu"],
        "home": "current",
        "upstream": {
            "reports": ["https://example.org/toys/9001"],
            "introduced_by": [],
            "fixed_by": [],
            "unreleased_fix": [],
            "related": [],
        },
        "kind": "bug",
        "documented": None,
    }


def test_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert repros("list", "--family", "fabric")[1].startswith(
        """\
RPR-0005 Calling a submodule of a Fabric module skips
         gradient synchronisation (silent)
"""
    )
    assert repros("list", "--family", "fabric", "-v")[1].startswith(
        """\
RPR-0005 Calling a submodule of a Fabric module skips
         gradient synchronisation
         fabric/submodule_call_skips_gradient_sync
         ddp, ddp_spawn on cpu, cuda, sim
         silent: a wrong result without an error
"""
    )
    assert lines_over(60, repros("list")[1]) == lines_over(60, repros("list", "-v")[1]) == []


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200, 300])
def test_a_line_for_each_as_wide_as_the_terminal(width: int, repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = repros("list")[1]
    ids = [summary["id"] for summary in json.loads(repros("list", "--json")[1])]
    lines = out.splitlines()
    assert [line[:8] for line in lines if not line.startswith(" ")] == ids
    assert lines_over(width, out) == []
    assert not [line for line in lines if line != line.rstrip()]
    assert len(lines) < len(ids) * (1.9 if width == 80 else 1.25)
    assert ("  lightning<2.1\n" in out or "  lightning<2.1 " in out) == (width >= 160)
    assert ("fails on 2023-05; clean on" in out) == (width == 300)


def test_words(repros: Command) -> None:
    def ids(*words: str) -> list[str]:
        return [summary["id"] for summary in json.loads(repros("list", "--json", *words)[1])]

    assert "RPR-0001" in ids("FINDER")
    assert ids("finder", "cpu") == [id_ for id_ in ids("finder") if id_ in ids("cpu")]
    assert ids("at least two devices") == [id_ for id_ in ids("devices") if id_ in ids("at least two devices")] != []
    assert "RPR-0004" in ids("fused_adamw"), "of the script's name"
    assert ids("lightning") != ids("lightning", "--silent")
    assert {*ids("bitsandbytes")} >= {*ids("--package", "bitsandbytes")}
    assert ids("rpr-0022") == ["RPR-0022"]
    assert {"RPR-0025", "RPR-0042"} <= {*ids("hang")}
    assert repros("list", "no", "such", "failure") == (0, "no documented failure matches\n", "")
