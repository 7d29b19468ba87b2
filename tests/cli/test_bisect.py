"""`repros bisect` up to the environment; the rest is in tests/scripts/bisect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.environments.index import ReleaseFile
from repros.engine.environments.releases import parse_files
from tests.cli.command import Command
from tests.transcript import transcript

RECORDED = Path(__file__).parents[1] / "engine" / "environments" / "recorded"


@pytest.fixture(autouse=True)
def index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the index by its recorded responses."""

    def fetch_recorded_files(project: str) -> list[ReleaseFile]:
        return parse_files(json.loads((RECORDED / f"{project}.json").read_text(encoding="utf-8")))

    monkeypatch.setattr("repros.scripts.bisect.question.fetch_files", fetch_recorded_files)


def test_text(repros: Command, snapshot: SnapshotAssertion) -> None:
    dry = "bisect RPR-0001 --package Lightning --bad 2.1.0 --good 2.6.0 --dry-run"
    assert snapshot == transcript(repros, dry)
    code, plan, _ = repros(*dry.split())
    assert repros(*dry.split(), "--json") == (code, "", plan), "stdout is for the answer alone"
