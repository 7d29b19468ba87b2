"""`repros audit`: whole output, exit codes, ignores of the project and of the command line."""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine import evidence
from repros.engine.evidence import Measurement, Unit, VariantVerdict
from repros.model import Device, Verdict
from tests.cli.command import CLAIMED, Command
from tests.transcript import transcript


@pytest.fixture(autouse=True)
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a catalogue of one repro, which affects torch from 2.1 on and has no evidence."""
    (here / "own.py").write_text(CLAIMED)
    (here / "requirements.txt").write_text("numpy\ntorch==2.1.2\n")
    monkeypatch.setattr(evidence, "read", lambda **_: {})
    return here


OWN = ("--catalogue", "own.py", "--fail-on", "bugs")


@pytest.fixture
def failures(project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A catalogue with a failure of each status and kind, and the evidence of one; return the words that name it."""
    texts = {
        "RPR-0001": ('affected = ["lightning>=2.1,<2.4"]', "packages", '["lightning"]'),
        "RPR-0002": ('affected = ["lightning<2.6"]', "silent", "true"),
        "RPR-0003": ('affected = ["accelerate<1"]', "packages", '["accelerate"]'),
        "RPR-0004": ('affected = ["bitsandbytes<1"]', "packages", '["bitsandbytes"]'),
        "RPR-0005": ('affected = ["torch<2"]', "packages", '["torch"]'),
        "RPR-0006": ("", "requires", '["torch>=2.4"]'),
        "RPR-0008": ("", "documented", '"https://example.org/misuse"'),
        "RPR-0009": (
            'affected = ["lightning>=2.0,<2.0.8 or lightning>=2.1,<2.3 or lightning==2.4.*"]',
            "documented",
            '"https://example.org/limitation"',
        ),
        "RPR-0010": ('exists = ["torch>=2.8"]\n# exists_source = "https://a.b/1"', "packages", '["torch"]'),
    }
    kinds = {"RPR-0008": "misuse", "RPR-0009": "limitation"}
    (project / "failures").mkdir()
    for number, (id_, (ranges, key, value)) in enumerate(texts.items()):
        text = CLAIMED.replace("RPR-0007", id_).replace('"bug"', f'"{kinds.get(id_, "bug")}"')
        text = text.replace('affected = ["torch>=2.1"]', ranges or "affected = []")
        text = text.replace("# strategies", f"# {key} = {value}\n# strategies")
        if key == "packages":
            text = text.replace('# packages = ["torch"]\n', "", 1)
        (project / f"failures/failure_{number}.py").write_text(text)
    seen = {"failing": VariantVerdict(Verdict.REPRODUCED, "X")}
    versions = {"lightning": "2.2", "torch": "2.2"}
    unit = Unit("2023-12", "RPR-0001", Device.CPU, "ddp")
    measured = Measurement(unit, "", dt.date(2026, 1, 1), "warm", "Linux", "3.11.7", versions, 2, 1.0, seen)
    monkeypatch.setattr(evidence, "read", lambda **_: {unit: measured})
    (project / "requirements.txt").write_text("lightning==2.2\ntorch==2.2\naccelerate>=0.20\n./folder\n")
    ignored = ("RPR-0001 1999-01-31 'we knew'", "RPR-0002 2999-01-31 'we know'", "RPR-0005 2999-01-31 'not ours'")
    return "requirements.txt --catalogue failures " + " ".join(f"--ignore {ignore}" for ignore in ignored)


def test_text(repros: Command, project: Path, failures: str, snapshot: SnapshotAssertion) -> None:
    (project / "clear.txt").write_text("torch==2.0.1\n")
    (project / "older.txt").write_text("lightning==2.2\ntorch==2.2\naccelerate==0.20\n")
    (project / "newer.txt").write_text("lightning==2.6\ntorch==2.8\naccelerate==0.20\n")
    (project / "foreign.txt").write_text("numpy\n")
    own = [f"audit {name} --catalogue own.py --all --verbose" for name in ("requirements.txt", "clear.txt")]
    assert snapshot == transcript(
        repros,
        f"audit {failures}",
        f"audit {failures} --fail-on bugs --strict --verbose",
        f"audit {failures} --all",
        f"audit {failures} --format markdown",
        "audit newer.txt --base older.txt --catalogue failures --fail-on bugs",
        "audit foreign.txt --catalogue failures --all",
        *own,
    )


def test_the_project_s_own_file_is_found(repros: Command) -> None:
    assert repros("audit", *OWN) == repros("audit", "requirements.txt", *OWN)
    assert repros("audit", *OWN, "-v") == repros("audit", *OWN, "--verbose")


@pytest.mark.parametrize("spec", ["torch>=2.0", "numpy"])
def test_strict_counts_possible_and_unknown_failures(spec: str, repros: Command, project: Path) -> None:
    (project / "requirements.txt").write_text(f"{spec}\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--strict")[0] == 1


def test_a_failure_is_reported_from_its_extent_on(repros: Command, project: Path) -> None:
    def codes() -> list[int]:
        return [
            repros("audit", "--catalogue", "own.py", "--fail-on", extent)[0] for extent in ("fixable", "bugs", "all")
        ]

    assert codes() == [0, 1, 1]
    (project / "own.py").write_text(CLAIMED.replace('"bug"', '"limitation"\n# documented = "https://example.org"'))
    assert codes() == [0, 0, 1]
    (project / "own.py").write_text(CLAIMED.replace("torch>=2.1", "torch>=2.1,<2.4"))
    assert codes() == [1, 1, 1]
    assert repros("audit", "--catalogue", "own.py")[0] == 1, "the default is fixable"


def test_a_base_with_the_same_failure_ends_with_0(repros: Command, project: Path) -> None:
    (project / "base").mkdir()
    (project / "base/requirements.txt").write_text("torch==2.1.0\n")
    assert repros("audit", *OWN)[0] == 1
    for base in ("base", "base/requirements.txt"):
        code, out, _ = repros("audit", *OWN, "--base", base, "--json")
        assert (code, json.loads(out)["base"]["kept"]) == (0, ["RPR-0007"])
    (project / "base/requirements.txt").write_text("torch==2.0.1\n")
    assert repros("audit", *OWN, "--base", "base")[0] == 1
    assert repros("audit", *OWN, "--base", "missing.txt")[0] == 2


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


def test_an_ignore_of_the_command_line_without_a_reason_is_refused(repros: Command) -> None:
    status, _, problem = repros("audit", *OWN, "--ignore", "RPR-0007", "2999-01-31", " ")
    assert status == 2
    assert "--ignore has an empty reason" in problem


def test_a_pin_with_one_equals_sign_is_refused(repros: Command, project: Path) -> None:
    (project / "requirements.txt").write_text("torch==2.1.2\nlightning=2.4.0\n")
    status, _, problem = repros("audit", *OWN, "requirements.txt")
    assert status == 2
    assert "requirements.txt:2: 'lightning=2.4.0' is not a requirement; write 'lightning==2.4.0'." in problem


def test_ignores_of_the_project(repros: Command, project: Path) -> None:
    entry = '{ id = "RPR-0007", reason = "the project knows", until = 2999-01-31 }'
    (project / "pyproject.toml").write_text(f"[tool.repros.audit]\nignore = [{entry}]\n")
    assert repros("audit", *OWN)[0] == 0
    assert repros("audit", *OWN, "--ignore", "RPR-0007", "1999-01-31", "we knew")[0] == 1, "the command line wins"


def test_sarif(repros: Command) -> None:
    code, out, _ = repros("audit", *OWN, "--format", "sarif")
    assert (code, json.loads(out)["runs"][0]["results"][0]["ruleId"]) == (1, "RPR-0007")


def test_standard_input(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, code in (("torch==2.1.2\n", 1), ("- torch: 2.1.2\n- OS: Linux\n", 1), ("It hangs: why?\n", 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert repros("audit", "-", *OWN)[0] == code


def test_of_an_issue_the_environment_counts_and_not_the_prose(repros: Command, project: Path) -> None:
    block = "```\nPyTorch version: {}\nPython version: 3.11.9\nnumpy==1.26.4\n```\n"
    issue = f"### Bug\n\nIt works with torch 2.0.1.\n\n{block}"
    for version, code in (("2.1.2", 1), ("2.0.1", 0)):
        (project / "issue.md").write_text(issue.format(version))
        assert repros("audit", "issue.md", *OWN)[0] == code


@pytest.mark.parametrize("line", ["torch @ file:///x", "torch @ git+https://github.com/pytorch/pytorch@main"])
def test_a_package_without_a_release_is_named_in_the_first_sentence(repros: Command, here: Path, line: str) -> None:
    (here / "requirements.txt").write_text(f"{line}\n")
    code, out, _ = repros("audit", "requirements.txt")
    assert (code, "the release of torch is unknown" in " ".join(out.split("\n\n")[0].split())) == (0, True)
    (here / "requirements.txt").write_text("torch==2.6.0\n")
    assert "is unknown" not in repros("audit", "requirements.txt")[1].split("\n\n")[0]
