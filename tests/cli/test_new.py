"""`repros new`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Command


def test_new(repros: Command, here: Path) -> None:
    code, out, _ = repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    assert (code, out) == (
        0,
        "toys/it_breaks.py\nFill it in, run it by hand, then:\n  repros run it_breaks --catalogue .\n",
    )
    assert repros("show", "it_breaks", "--catalogue", ".")[0] == 0
    assert repros("new", "it_breaks", "--family", "toys", "--catalogue", ".") == (
        2,
        "",
        "repros: toys/it_breaks.py is there already; choose another name, or edit that.\n",
    )
