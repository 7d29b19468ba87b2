"""A program compared with itself and with its changed variant, by the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from repros.cli import main


def difference_of_changed(words: Sequence[str], capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Check that a program equals itself, bit for bit; return its first difference from itself with `changed`."""
    assert main(["compare", "--json", *options, "--", *words]) == 0, capfd.readouterr().err
    assert "the same bits" in json.loads(capfd.readouterr().out)["answer"]
    return first_difference(words, capfd, *options)


def first_difference(words: Sequence[str], capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return a program's first difference from itself with `changed`."""
    assert main(["compare", "--json", *options, "--", *words, "--", *words, "changed"]) == 1, capfd.readouterr().err
    found: dict[str, Any] = json.loads(capfd.readouterr().out)["difference"]
    return found
