"""What trainings under the watch need: one thread, since toys are small."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads than cores make a small training slower."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
