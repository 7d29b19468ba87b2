"""`repros show`: by id or slug, and as JSON."""

from __future__ import annotations

import json

from tests.cli.command import RAISES, Command


def test_show_by_id_or_slug(repros: Command) -> None:
    code, out, _ = repros("show", "rpr-9001", "--catalogue", RAISES)
    assert code == 0
    assert out.startswith(
        "RPR-9001 A plain exception\nkind      bug\naffects   every release of torch; exact on stack current\n"
    )
    assert repros("show", "raises", "--catalogue", RAISES)[1] == out


def test_several_by_number(repros: Command) -> None:
    shown = [repros("show", name)[1] for name in ("RPR-0005", "RPR-0017")]
    assert repros("show", "5", "rpr-17", "0005") == (0, f"{shown[0]}\n{shown[1]}", "")
    details = [json.loads(repros("show", "--json", name)[1]) for name in ("5", "17")]
    assert json.loads(repros("show", "--json", "5", "17")[1]) == details
    assert json.loads(repros("show", "--json", "5", "5")[1]) == details[:1]


def test_as_json(repros: Command) -> None:
    (summary,) = json.loads(repros("list", "--json", "--catalogue", RAISES)[1])
    details = json.loads(repros("show", "raises", "--json", "--catalogue", RAISES)[1])
    assert details.items() > summary.items()
    assert (details["variants"][0]["name"], details["variants"][0]["raises"]) == ("failing", "ValueError")
