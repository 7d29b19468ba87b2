"""`repros show`: by id or slug, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from tests.cli.command import RAISES, Command
from tests.factories import VALID
from tests.transcript import transcript


def test_text(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    code = "\ndef failing():\n    find()\n\n\ndef fixed():\n    fit()\n"
    exists = '# exists = ["lightning>=2.1"]\n# exists_source = "https://a.b/1"\n# home'
    (here / "slug.py").write_text(VALID.replace("# home", exists) + code, "utf-8")
    silent = (
        VALID[: VALID.index('"""Symptom')].replace("minimum = 1", "silent = true") + '"""It fails.\n\nSometimes.\n"""\n'
    )
    (here / "silent.py").write_text(silent.replace('affected = ["lightning>=2.1,<2.4"]', "affected = []"), "utf-8")
    assert snapshot == transcript(repros, "show rpr-0001 --catalogue slug.py", "show rpr-0001 --catalogue silent.py")


def test_by_id_or_slug(repros: Command) -> None:
    by_id = repros("show", "rpr-9001", "--catalogue", RAISES)
    assert by_id[0] == 0
    assert repros("show", "raises", "--catalogue", RAISES) == by_id


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
