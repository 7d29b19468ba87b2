"""Gradients that differ between ranks get the name of a failure only where its evidence is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.diagnose.watch.test_incode import TOYS, run

FOUND = {
    "noise": ["gradients_differ_changed"],
    "another_limit": ["gradients_differ_changed"],
    "zeroed": ["gradients_differ_changed", "steps_of_zero_gradients"],
    "another_step": ["gradients_differ"],
    "noise_beside_a_checkpoint": ["gradients_differ_changed"],
    "clipped_alike": [],
    "noise_in_a_large_layer": ["gradients_differ_changed"],
    "noise_by_data_in_a_large_layer": ["gradients_differ_changed"],
    "large_layer": [],
    "reentrant_checkpoint_once": [],
    "reentrant_checkpoint_twice": ["gradients_differ_checkpointed RPR-0034"],
    "reentrant_checkpoint_once_noise": ["gradients_differ_changed"],
}


@pytest.mark.slow
def test_a_cause_that_is_not_the_catalogues_gets_no_id(warm_python: Path, tmp_path: Path) -> None:
    done = run(warm_python, tmp_path, str(TOYS / "changed.py"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == FOUND
