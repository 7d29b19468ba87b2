"""`repros doctor`: every attempt is made, and what a sandbox lacks is open."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from repros.scripts.doctor.examination import TRIED, Examination, examine
from repros.scripts.doctor.inside.attempts import ATTEMPTS
from repros.scripts.doctor.text import examination_to_json, format_examination
from repros.scripts.try_ import sandbox as sandboxes
from repros.scripts.try_.sandbox import Sandbox, find_sandbox
from tests.scripts.try_ import without_namespaces
from tests.scripts.try_.conftest import ROOT

OPEN_WITHOUT_ALL = {
    *("read", "list", "name", "write", "mode", "setuid", "network", "socket", "abstract", "shared", "segment"),
    *("terminal", "devices", "see", "signal", "memory", "slow", "namespaces", "share"),
}
"""What any user reaches without a sandbox: the rest depends on the user and the kernel."""
OPEN_WITHOUT_NAMESPACES = {"name", "network", "socket", "shared", "segment", "terminal", "devices", "see", "share"}


def opened(examination: Examination) -> set[str]:
    return {attempt.name for attempt in examination.open}


def test_each_attempt_has_a_description() -> None:
    assert TRIED.keys() == {*ATTEMPTS, "share"}


@pytest.mark.parametrize("with_bubblewrap", [True, False])
def test_the_whole_sandbox_stands(with_bubblewrap: bool) -> None:
    sandbox = find_sandbox(network=False, with_bubblewrap=with_bubblewrap)
    if with_bubblewrap and sandbox.bubblewrap is None:
        pytest.skip("bubblewrap is not installed")
    if sandbox.problems:
        pytest.skip("this system cannot build the whole sandbox")
    examination = examine(sandbox)
    assert opened(examination) == set()
    *_, last = (line.plain for line in format_examination(examination, 100))
    assert last.endswith(", none of them successful.")
    assert {one["stands"] for one in examination_to_json(examination)["attempts"]} <= {True, None}


def test_each_attempt_succeeds_where_nothing_hinders_it() -> None:
    """Otherwise it would find a sandbox where there is none."""
    nothing = Sandbox(network=False, files=False, system=False, processes=False, calls=False, problems={})
    assert opened(examine(nothing)) >= OPEN_WITHOUT_ALL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
def test_what_is_open_without_namespaces_is_named() -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.cli.main import main; sys.exit(main())"
    words = [sys.executable, without_namespaces.__file__, sys.executable, "-c", program, "doctor", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["walls"]["problems"].keys() == {"network", "system", "processes"}
    reached = {one["name"] for one in found["attempts"] if one["stands"] is False}
    assert reached >= OPEN_WITHOUT_NAMESPACES
    assert {"read", "write", "trace"} & reached == set()


def test_a_problem_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "INTERPRETER", sandboxes.INTERPRETER.with_name("no-python"))
    sandbox = find_sandbox(network=False)
    assert all("self-test of the sandbox failed" in reason for reason in sandbox.problems.values())
    assert len(sandbox.problems) == 5
