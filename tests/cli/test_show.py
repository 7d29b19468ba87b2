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


def test_as_json(repros: Command) -> None:
    (summary,) = json.loads(repros("list", "--json", "--catalogue", RAISES)[1])
    details = json.loads(repros("show", "raises", "--json", "--catalogue", RAISES)[1])
    assert details.items() > summary.items()
    assert (details["variants"][0]["name"], details["variants"][0]["raises"]) == ("failing", "ValueError")
