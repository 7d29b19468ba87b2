"""`repros list`: its text, filters, JSON, widths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import RAISES, Command, lines_over
from tests.transcript import transcript


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    own = here / "failures" / "lightning"
    own.mkdir(parents=True)
    silent = Path(RAISES).read_text("utf-8").replace("9001", "9002").replace("# home", "# silent = true\n# home")
    (own / "raises.py").write_bytes(Path(RAISES).read_bytes())
    (own / "silent.py").write_text(silent, "utf-8")
    (own / "forgotten.py").write_text('"""A script of mine."""\n')
    (own / "conftest.py").write_text("")
    listed = "list --catalogue failures"
    assert snapshot == transcript(
        repros, listed, f"{listed} --verbose", f"{listed} --markdown", f"{listed} no such failure"
    )


def test_the_package_s_own_scripts_all_have_a_header(repros: Command) -> None:
    assert repros("list")[2] == ""


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
    for options in ((), ("-v",)):
        first, second, *_ = repros("list", "--family", "fabric", *options)[1].splitlines()
        assert first == "RPR-0005 Calling a submodule of a Fabric module skips"
        assert second.startswith("         gradient synchronisation")
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
    assert ids("no", "such", "failure") == []
