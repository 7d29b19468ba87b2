"""`repros bisect` up to the environment; the rest is in tests/scripts/bisect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from repros.engine.environments.index import ReleaseFile
from repros.engine.environments.releases import parse_files
from tests.cli.command import Command

RECORDED = Path(__file__).parents[1] / "engine" / "environments" / "recorded"


@pytest.fixture(autouse=True)
def index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the index by its recorded responses."""

    def fetch_recorded_files(project: str) -> list[ReleaseFile]:
        return parse_files(json.loads((RECORDED / f"{project}.json").read_text(encoding="utf-8")))

    monkeypatch.setattr("repros.scripts.bisect.ask.fetch_files", fetch_recorded_files)


PLAN = """\
4 releases of lightning to choose from: 2.1.0, 2.3.0, 2.4.0, 2.6.0
1. 2.1.0: must show the failure
2. end of the failure, in 2.3.0 to 2.6.0: 2.4.0 first, at most 2 releases
at most 3 releases, plus those that give no answer and those that further jobs try meanwhile; \
2 to 3 runs of each on stack 2023-12
"""


def test_a_dry_run_shows_the_steps_and_their_cost(repros: Command) -> None:
    command = ("bisect", "RPR-0001", "--package", "Lightning", "--bad", "2.1.0", "--good", "2.6.0", "--dry-run")
    assert repros(*command) == (0, PLAN, "")
    assert repros(*command, "--json") == (0, "", PLAN)


NO_VERSION = "Invalid value for '--good': 'latest' is not a version number; expected something like 2.4.0."


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            "RPR-0001 --bad 2.1.3",
            "lightning 2.1.3 cannot be tried here; expected a release from 2.1.0 to 2.6.4.",
        ),
        (
            "RPR-0001 --bad 2.6.2",
            "lightning 2.6.2 cannot be tried here; expected a release from 2.1.0 to 2.6.4.",
        ),
        ("RPR-0001 --variant fixed", "RPR-0001 fixed is a fix; expected a variant that fails."),
        ("RPR-0001 --package torch --stack 2023-13", "unknown stack '2023-13'; did you mean '2023-12'?"),
        (
            "RPR-0001 --on 2023-12",
            "Invalid value for '--on': '2023-12'; expected 'ray' or 'ray://HOST:PORT'. (try 'repros bisect --help')",
        ),
        ("RPR-0002", "RPR-0002 is in accelerate, lightning; name one with --package."),
        (
            "RPR-0001 --jobs 0",
            "Invalid value for '--jobs': 0 is not in the range x>=1. (try 'repros bisect --help')",
        ),
        ("RPR-0001 --good latest", f"{NO_VERSION} (try 'repros bisect --help')"),
    ],
)
def test_refusals(repros: Command, words: str, problem: str) -> None:
    assert repros("bisect", *words.split(), "--dry-run") == (2, "", f"repros: {problem}\n")
