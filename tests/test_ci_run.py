"""`.ci/run` with a nox that only notes what it was asked for: what it runs, how it ends, and what it prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci/run"
NOX = """#!/usr/bin/env bash
echo "$@" >> calls.txt
echo "output of $2"
[ "$2" = tests ] && echo "== 7 passed in 1.00s =="
case " $FAILING " in *" $2 "*) exit 1 ;; esac
"""
SESSIONS = [
    *("lint", "sim(2023-05)", "sim(current)", "tests", "programs"),
    *("browser", "repro", "authoring", "workflows", "evidence"),
]
LONG = {"tests", "programs", "browser", "authoring", "workflows"}


def run(folder: Path, *arguments: str, failing: str = "") -> subprocess.CompletedProcess[str]:
    for place, text in {".ci/run": RUN.read_text(), ".ci/chromium": "#!/bin/sh\n", ".nox/ci/bin/nox": NOX}.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
        (folder / place).chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(
        [bash, ".ci/run", *arguments], cwd=folder, env={**os.environ, "FAILING": failing},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_every_session_runs_once_and_its_time_is_printed(tmp_path: Path) -> None:
    done = run(tmp_path, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert sorted(call.split()[1] for call in calls) == sorted(SESSIONS)
    assert "-s repro -- --require sim --require cpu --jobs 3 --device cpu" in calls
    assert [call for call in calls if "sim(" in call] == [
        "-s sim(2023-05) -- -m one_release",
        "-s sim(current) -- -m not one_release",
    ]
    for name in SESSIONS:
        assert (
            len(re.findall(rf"^output of {re.escape(name)}$", done.stdout.split("The time of")[0], re.MULTILINE)) == 1
        )
        assert len(re.findall(rf"^\d+ s  {re.escape(name)}$", done.stdout, re.MULTILINE)) == 1
    assert re.search(r"closing lines:\noutput of tests\n== 7 passed in 1.00s ==\n", done.stdout)


def test_all_cases_and_the_warnings_by_command(tmp_path: Path) -> None:
    done = run(tmp_path, "--long", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert sorted(call.split()[1] for call in calls) == sorted([*SESSIONS, "cpp"])
    assert "-s repro -- --require sim --require cpu --jobs 3 --device cpu" in calls
    assert {call.split()[1] for call in calls if call.endswith(" -- --long")} == LONG
    assert "-s sim(2023-05) --" in calls


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_that_fails_is_named_and_not_run_again(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, failing=name)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"failed: {name}")
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert sorted(call.split()[1] for call in calls) == sorted(SESSIONS)
