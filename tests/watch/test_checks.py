"""Trainings under the watch: what each gives, and that its weights are the same bit for bit without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOYS = Path(__file__).parent / "toys"
SAME = "import sys, torch; a, b = map(torch.load, sys.argv[1:]); sys.exit(not all(torch.equal(a[n], b[n]) for n in a))"

FOUND = {
    "plain": [],
    "fused": [],
    "gan": [],
    "frozen_statistics": [],
    "eval_mode": [],
    "left_in_eval": ["eval_mode"],
    "compiled": [],
    "compiled_left_in_eval": ["eval_mode"],
    "frozen_backbone": [],
    "resumed": [],
    "resumed_by_steps": [],
    "resumed_multiplying": [],
    "resumed_without_scheduler": ["schedule_not_restored"],
    "scheduler_made_last": ["rate_reset"],
    "resumed_without_scaler": ["scaler_not_restored"],
    "resumed_with_scaler": [],
    "attack": [],
    "other_parameters": ["steps_without_gradients"],
    "accumulation": [],
    "by_hand": [],
    "checkpointed": [],
    "functional": [],
}
STATES = {
    "skipped_first_step": ["state_uninitialised"],
    "rolled_back": ["state_reused"],
    "states_shared": ["state_shared"],
    "states_copied": [],
    "state_taken_over": [],
    "state_loaded_into_itself": [],
}
"""In a file of their own."""
SWITCHED = {
    "trained_without_train": ["train_not_called"],
    "trained_with_train": [],
    "frozen_before_train": [],
    "dropping": ["dropout_in_evaluation"],
    "dropping_in_training": [],
    "monte_carlo": [],
    "attending": ["dropout_in_evaluation"],
    "attending_without_dropout": [],
    "norm_before_training": ["spectral_norm_not_estimated"],
    "norm_after_a_pass": [],
    "norm_parametrized": [],
}
"""In a file of their own."""
HEALTHY = (
    "zeroed_by_data",
    "gan_not_detached",
    "clipped_after_unscale",
    "best_weights_copied",
    "shared_stream",
    "last_layer_alone",
    "head_replaced_before",
)
"""Nearly the same as a silent error; in a file of their own."""
COLD = ("plain", "compiled", "resumed_without_scheduler")
"""Trainings that run in interpreters of their own, which the watch enters before torch is imported."""

OPTIONS = {
    ("other_parameters", "--skip", "steps"): [],
    ("other_parameters", "--skip", "steps_without_gradients"): [],
    ("other_parameters", "--only", "steps"): ["steps_without_gradients"],
    ("other_parameters", "--only", "eval_mode"): [],
    ("evaluated_in_step_three",): [],
    ("evaluated_in_step_three", "--every", "3"): ["eval_mode"],
}


def script(name: str) -> str:
    """Return the file of a training."""
    files = {"healthy.py": HEALTHY, "states.py": STATES, "switched.py": SWITCHED}
    return str(TOYS / next((file for file, names in files.items() if name in names), "trainings.py"))


def watch(python: Path, name: str, folder: Path, *options: str) -> list[str]:
    """Run a training under the watch; return the checks that spoke."""
    findings = folder / "findings.jsonl"
    command = [sys.executable, "-m", "repros", "watch", *options, "--json", str(findings), "--"]
    command += [str(python), script(name), name, str(folder / "watched.pt")]
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environ, timeout=240)
    assert "the watch itself failed" not in done.stderr
    return [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()]


@pytest.fixture
def python(request: pytest.FixtureRequest, current_python: Path, warm_python: Path) -> Path:
    """The interpreter of a test's training."""
    return current_python if request.node.callspec.params.get("name") in COLD else warm_python


@pytest.mark.slow
@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_options_choose_what_speaks(arguments: tuple[str, ...], python: Path, tmp_path: Path) -> None:
    name, *options = arguments
    assert watch(python, name, tmp_path, *options) == OPTIONS[arguments]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FOUND, *STATES, *SWITCHED, *HEALTHY])
def test_a_training_gives_its_findings_and_the_same_weights(
    name: str, python: Path, warm_python: Path, tmp_path: Path
) -> None:
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    plain = tmp_path / "plain.pt"
    subprocess.run([python, script(name), name, plain], check=True, env=environ, timeout=240)
    assert watch(python, name, tmp_path) == {**FOUND, **STATES, **SWITCHED}.get(name, [])
    subprocess.run([warm_python, "-c", SAME, plain, tmp_path / "watched.pt"], check=True, env=environ, timeout=240)
