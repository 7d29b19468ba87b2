"""This checkout's steps of `repros check`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from repros.authoring.check.project_steps import MEASURED, Ran
from repros.engine import environments
from tests import factories
from tools import check

ROOT = Path(__file__).parents[2]


def test_the_style_is_fixed_and_broken_rules_are_reported(tmp_path: Path) -> None:
    script = tmp_path / "it_breaks.py"
    script.write_text('"""A toy."""\n\nimport os\n\n\ndef f( ):\n    return eval("1")\n', "utf-8")
    sentences = check.check_style([replace(factories.repro(), path=script)]).to_do
    written = script.read_text("utf-8")
    assert "import os" not in written
    assert '\ndef f():\n    return eval("1")\n' in written
    assert all(sentence.startswith("fix the style: ") for sentence in sentences)
    assert len([sentence for sentence in sentences if ": S307 " in sentence]) == 1


def test_one_command_makes_the_stacks_that_the_watch_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    repros = [factories.repro("RPR-0001", home="2023-12"), factories.repro("RPR-0002", home="current")]
    monkeypatch.setattr(environments, "ready", lambda stack: stack.name != "current")
    command = "repros check RPR-0001 RPR-0002 --stack 2023-12 --stack current"
    assert check.check_watch(repros) == Ran([f"run them under the watch on current too: {command}"])


def test_only_scripts_that_were_measured_run_under_the_watch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        calls.append(words)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(environments, "ready", lambda _: True)
    monkeypatch.setattr(check, "_run", run)
    monkeypatch.setenv(MEASURED, "RPR-0002")
    report = check.check_watch([factories.repro("RPR-0001"), factories.repro("RPR-0002")])
    assert report == Ran([], "the findings of all runs are recorded")
    assert [words[-1:] if "--missing" not in words else words[-2:] for words in calls] == [
        ("RPR-0002",),
        ("--missing", "RPR-0001"),
    ]


def test_a_failure_that_the_watch_does_not_name_needs_an_explanation() -> None:
    def ran(repro: str, variant: str, *found: tuple[str, list[str]], fails: bool = True) -> dict[str, object]:
        findings = [{"check": name, "ids": ids} for name, ids in found]
        return {"repro": repro, "variant": variant, "fails": fails, "found": findings}

    explained = factories.repro("RPR-0002", doc="Symptom: x.\n\nWatch: `rate_reset` finds it, whatever the cause is.")
    lines = [
        ran("RPR-0001", "failing", ("rate_reset", ["RPR-0001"])),
        ran("RPR-0001", "fixed", fails=False),
        ran("RPR-0001", "other", ("rate_reset", []), ("eval_mode", ["RPR-0006"])),
        ran("RPR-0001", "other", ("rate_reset", [])),
        ran("RPR-0001", "third"),
        ran("RPR-0002", "failing", ("rate_reset", [])),
        ran("RPR-0002", "other", ("eval_mode", [])),
    ]
    sentences = list(check.explain_missed_failures([factories.repro("RPR-0001"), explained], lines))
    assert [sentence.partition(":")[0] for sentence in sentences] == [
        "the watch reports rate_reset, eval_mode for RPR-0001/other",
        "the watch reports nothing for RPR-0001/third",
        "the watch reports eval_mode for RPR-0002/other",
    ]


def test_a_step_is_a_command_that_exits_with_1_while_something_is_left() -> None:
    def run(step: str) -> tuple[int, str]:
        words = [sys.executable, "-m", "tools.check", step, "RPR-0001"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run("style") == (0, "ruff finds nothing\n")


def test_the_files_to_commit_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.name_files([]).fine == "not listed: this is no git checkout"
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert check.name_files([]).fine == "all is committed"
    (tmp_path / "a.py").touch()
    assert check.name_files([]).fine == "commit these: a.py"
