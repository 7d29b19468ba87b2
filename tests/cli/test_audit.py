"""`repros audit`: whole output, exit codes, ignores of the project and of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from repros.engine import evidence
from tests.cli.command import CLAIMED, Command


@pytest.fixture(autouse=True)
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a catalogue of one repro, which affects torch from 2.1 on and has no evidence."""
    (here / "own.py").write_text(CLAIMED)
    (here / "requirements.txt").write_text("numpy\ntorch==2.1.2\n")
    monkeypatch.setattr(evidence, "read", lambda **_: {})
    return here


OWN = ("--catalogue", "own.py")
AFFECTED = """\
requirements.txt: 1 documented failure: 1 affected, 0 possible, 0 unknown, 0 not affected

Bugs, fixed in no release yet (1)
  RPR-0007 A script of one's own

reasons, workarounds and evidence: --verbose
one failure in full: repros show RPR-0007 --catalogue own.py
"""
VERBOSE = """\
requirements.txt: 1 documented failure: 1 affected, 0 possible, 0 unknown, 0 not affected

Bugs, fixed in no release yet (1)

RPR-0007 A script of one's own
  because     torch 2.1.2 (requirements.txt:2) is in torch>=2.1
  fixed in    no release yet
  unaffected  torch<2.1
  workaround  fails all the same (variant fixed)
  evidence    documented, not measured
  more        repros show RPR-0007 --catalogue own.py
"""


def test_an_affected_file(repros: Command) -> None:
    assert repros("audit", "requirements.txt", *OWN) == (1, AFFECTED, "")
    assert repros("audit", *OWN) == (1, AFFECTED, ""), "the project's own file is found"
    assert repros("audit", *OWN, "--verbose") == (1, VERBOSE, "")
    assert repros("audit", *OWN, "-v") == (1, VERBOSE, "")


def test_an_unaffected_file(repros: Command, project: Path) -> None:
    (project / "requirements.txt").write_text("torch==2.0.1\n")
    code, out, err = repros("audit", *OWN, "--verbose")
    assert (code, err) == (0, "")
    assert out == (
        "requirements.txt: 1 documented failure: 0 affected, 0 possible, 0 unknown, 1 not affected\n\n"
        "Not affected\n  RPR-0007: torch 2.0.1 (requirements.txt:1) is not in torch>=2.1\n"
    )


@pytest.mark.parametrize("spec", ["torch>=2.0", "numpy"])
def test_strict_counts_possible_and_unknown_failures(spec: str, repros: Command, project: Path) -> None:
    (project / "requirements.txt").write_text(f"{spec}\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--strict")[0] == 1


def test_bugs_only_leaves_out_what_is_no_bug(repros: Command, project: Path) -> None:
    assert repros("audit", *OWN, "--bugs-only") == (1, AFFECTED, "")
    (project / "own.py").write_text(CLAIMED.replace('"bug"', '"limitation"\n# documented = "https://example.org"'))
    assert repros("audit", *OWN)[0] == 1
    code, out, _ = repros("audit", *OWN, "--bugs-only")
    assert code == 0
    assert out == "requirements.txt: 0 documented failures: 0 affected, 0 possible, 0 unknown, 0 not affected\n"


def test_an_environment(repros: Command, project: Path) -> None:
    code, out, _ = repros("audit", "--python", sys.executable, *OWN, "--json")
    assert (code, json.loads(out)["complete"]) == (0, True)
    fake = project / "torch-2.13.0.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    python = project / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{project}" exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    code, out, _ = repros("audit", "--python", str(python), *OWN, "-v")
    assert code == 1
    assert "  because     torch 2.13.0 is in torch>=2.1\n" in out


def test_ignores_of_the_command_line(repros: Command) -> None:
    code, out, _ = repros("audit", *OWN, "--ignore", "RPR-0007", "2999-01-31", "we know")
    assert (code, out.splitlines()[2]) == (0, "ignored RPR-0007 until 2999-01-31: we know")
    code, out, _ = repros("audit", *OWN, "--ignore", "RPR-0007", "1999-01-31", "we knew")
    assert code == 1
    assert "expired ignore RPR-0007: ended on 1999-01-31 (we knew); renew it, or upgrade\n" in out


def test_ignores_of_the_project(repros: Command, project: Path) -> None:
    entry = '{ id = "RPR-0007", reason = "the project knows", until = 2999-01-31 }'
    (project / "pyproject.toml").write_text(f"[tool.repros.audit]\nignore = [{entry}]\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--ignore", "RPR-0007", "1999-01-31", "we knew")[0] == 1, "the command line wins"


def test_sarif(repros: Command) -> None:
    code, out, _ = repros("audit", *OWN, "--format", "sarif")
    assert (code, json.loads(out)["runs"][0]["results"][0]["ruleId"]) == (1, "RPR-0007")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "poetry.lock",
            "poetry.lock has an unknown format; expected requirements.txt, pyproject.toml, uv.lock or pylock.",
        ),
        ("requirements.txt --python x", "FILE and --python exclude each other: audit one after the other. (try"),
        ("--ignore RPR-0008 2999-01-31 why", "unknown repro 'RPR-0008'; 'repros list' shows all"),
        (
            "--ignore RPR-0007 soon why",
            "Invalid value for '--ignore': 'soon' does not match the format '%Y-%m-%d'. (try",
        ),
        ("--ignore RPR-0007", "Option '--ignore' requires 3 arguments."),
        ("nowhere.txt", "nowhere.txt cannot be read (No such file or directory)."),
    ],
)
def test_refusals(line: str, sentence: str, repros: Command) -> None:
    code, out, err = repros("audit", *OWN, *line.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"repros: {sentence}")
    assert err.count("\n") == 1
