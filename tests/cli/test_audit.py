"""`repros audit`: whole output, exit codes, ignores of the project and of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine import evidence
from tests.cli.command import CLAIMED, Command
from tests.transcript import transcript


@pytest.fixture(autouse=True)
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a catalogue of one repro, which affects torch from 2.1 on and has no evidence."""
    (here / "own.py").write_text(CLAIMED)
    (here / "requirements.txt").write_text("numpy\ntorch==2.1.2\n")
    monkeypatch.setattr(evidence, "read", lambda **_: {})
    return here


OWN = ("--catalogue", "own.py")


def test_text(repros: Command, project: Path, snapshot: SnapshotAssertion) -> None:
    (project / "older.txt").write_text("torch==2.0.1\n")
    (project / "range.txt").write_text("torch>=2.0\n")
    audit = "audit requirements.txt --catalogue own.py"
    assert snapshot == transcript(
        repros,
        audit,
        f"{audit} --verbose",
        f"{audit} --ignore RPR-0007 2999-01-31 'we know'",
        f"{audit} --ignore RPR-0007 1999-01-31 'we knew'",
        "audit older.txt --catalogue own.py --verbose",
        "audit range.txt --catalogue own.py --verbose",
    )


def test_the_project_s_own_file_is_found(repros: Command) -> None:
    assert repros("audit", *OWN) == repros("audit", "requirements.txt", *OWN)
    assert repros("audit", *OWN, "-v") == repros("audit", *OWN, "--verbose")


@pytest.mark.parametrize("spec", ["torch>=2.0", "numpy"])
def test_strict_counts_possible_and_unknown_failures(spec: str, repros: Command, project: Path) -> None:
    (project / "requirements.txt").write_text(f"{spec}\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--strict")[0] == 1


def test_bugs_only_leaves_out_what_is_no_bug(repros: Command, project: Path) -> None:
    assert repros("audit", *OWN, "--bugs-only") == repros("audit", *OWN)
    (project / "own.py").write_text(CLAIMED.replace('"bug"', '"limitation"\n# documented = "https://example.org"'))
    assert repros("audit", *OWN)[0] == 1
    code, out, _ = repros("audit", *OWN, "--bugs-only", "--json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_an_environment(repros: Command, project: Path) -> None:
    code, out, _ = repros("audit", "--python", sys.executable, *OWN, "--json")
    assert (code, json.loads(out)["complete"]) == (0, True)
    fake = project / "torch-2.13.0.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    python = project / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{project}" exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    code, out, _ = repros("audit", "--python", str(python), *OWN, "--json")
    (condition,) = json.loads(out)["findings"][0]["conditions"]
    assert (code, condition["range"], condition["overlap"]) == (1, "torch>=2.1", "all")


def test_ignores_of_the_command_line(repros: Command) -> None:
    assert repros("audit", *OWN, "--ignore", "RPR-0007", "2999-01-31", "we know")[0] == 0
    assert repros("audit", *OWN, "--ignore", "RPR-0007", "1999-01-31", "we knew")[0] == 1


def test_ignores_of_the_project(repros: Command, project: Path) -> None:
    entry = '{ id = "RPR-0007", reason = "the project knows", until = 2999-01-31 }'
    (project / "pyproject.toml").write_text(f"[tool.repros.audit]\nignore = [{entry}]\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--ignore", "RPR-0007", "1999-01-31", "we knew")[0] == 1, "the command line wins"


def test_sarif(repros: Command) -> None:
    code, out, _ = repros("audit", *OWN, "--format", "sarif")
    assert (code, json.loads(out)["runs"][0]["results"][0]["ruleId"]) == (1, "RPR-0007")
