"""Trainings under the watch: what each gives, and that its weights are the same bit for bit without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAININGS = Path(__file__).parent / "toys" / "trainings.py"
SAME = "import sys, torch; a, b = map(torch.load, sys.argv[1:]); sys.exit(not all(torch.equal(a[n], b[n]) for n in a))"

FOUND = {
    "plain": [],
    "fused": [],
    "gan": [],
    "frozen_statistics": [],
    "eval_mode": ["eval_mode"],
    "attack": [],
    "other_parameters": ["steps_without_gradients"],
    "accumulation": [],
    "by_hand": [],
    "rolled_back": ["state_reused"],
    "checkpointed": [],
    "functional": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_a_training_gives_its_findings_and_the_same_weights(name: str, current_python: Path, tmp_path: Path) -> None:
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    plain, watched, findings = (tmp_path / one for one in ("plain.pt", "watched.pt", "findings.jsonl"))
    subprocess.run([current_python, TRAININGS, name, plain], check=True, env=environ, timeout=240)
    watch = [sys.executable, "-m", "repros", "watch", "--json", str(findings), "--"]
    command = [*watch, str(current_python), str(TRAININGS), name, str(watched)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environ, timeout=240)
    assert "the watch itself failed" not in done.stderr
    assert [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()] == FOUND[name]
    subprocess.run([current_python, "-c", SAME, plain, watched], check=True, env=environ, timeout=240)
