"""The hint of an unknown name: the nearest known name, or all of them."""

from __future__ import annotations

import pytest

from repros.model.errors import UnknownNameError

IDS = [f"RPR-{number:04d}" for number in range(1, 40)]


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("RPR-005", IDS, "did you mean 'RPR-0005'?"),
        ("rpr5", IDS, "did you mean 'RPR-0005'?"),
        ("RPR_00015", IDS, "did you mean 'RPR-0015'?"),
        ("RPR-0030 ", IDS, "did you mean 'RPR-0030'?"),
        ("no-backward-sync", ["backward", "no_backward_sync"], "did you mean 'no_backward_sync'?"),
        ("fix", ["failing", "fixed"], "did you mean 'fixed'?"),
        ("zzz", ["failing", "fixed"], "known: failing, fixed."),
        ("zzz", [], "known: none."),
    ],
)
def test_the_hint(name: str, known: list[str], hint: str) -> None:
    assert str(UnknownNameError("repro", name, known)) == f"unknown repro {name!r}; {hint}"
