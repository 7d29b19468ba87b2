"""Failures of the catalogue that are errors of every day: their scripts under the watch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package_catalogue import load

pytestmark = pytest.mark.slow

FOUND = {
    ("RPR-0065", "failing"): ["clipped_nothing"],
    ("RPR-0065", "fixed"): [],
    ("RPR-0065", "asked_each_time"): [],
    ("RPR-0112", "failing"): ["score_logged_as_mean"],
    ("RPR-0112", "fixed"): [],
    ("RPR-0112", "at_the_end"): [],
    ("RPR-0112", "larger_batch"): [],
    ("RPR-0127", "failing"): ["schedule_unfinished"],
    ("RPR-0127", "fixed"): [],
    ("RPR-0127", "interval_beside"): ["schedule_unfinished"],
    ("RPR-0127", "estimated_by_hand"): ["schedule_unfinished"],
}
SCRIPTS = {repro.id: repro.path for repro in load().repros}


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("id_", "variant"), FOUND, ids="-".join)
def test_a_script_gives_its_findings(id_: str, variant: str, current_python: Path, tmp_path: Path) -> None:
    script, findings = SCRIPTS[id_], tmp_path / "findings.jsonl"
    # Without an import, which takes as long as the script.
    has_lightning = [str(current_python), "-c", "from importlib.metadata import version; version('lightning')"]
    if id_ != "RPR-0065" and subprocess.run(has_lightning, capture_output=True, check=False).returncode:
        pytest.skip("no lightning in this interpreter")
    # `-O` leaves out the script's assert, which makes it as silent as a program.
    command = [sys.executable, "-m", "repros", "watch", "--json", str(findings), "--", str(current_python), "-O"]
    done = subprocess.run([*command, str(script), variant], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()] == FOUND[id_, variant]
