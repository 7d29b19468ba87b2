"""Trainings under the watch: what each gives, and that its weights are the same bit for bit without."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest

from tests.diagnose.watch.watched import TOYS, have_same_bits, watch, watch_by_command

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
    "skipped_first_step": ["state_uninitialised", "weights_not_finite"],  # the memory is filled with NaN
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
FAULTS = {
    "nan_from_the_first_step": ["weights_not_finite"],
    "nan_from_the_third_step": ["weights_not_finite"],
    "rate_of_zero": ["parameters_unchanged"],
    "warmed_up_in_thousands": ["parameters_unchanged"],
    "rounded_away": ["parameters_unchanged"],
    "detached_between": ["layer_cut_off"],
    "first_without_gradients": ["layer_cut_off"],
    "layers_in_a_list": ["layers_in_plain_list"],
    "unfrozen_later": ["unfrozen_not_added"],
    "listed_twice": ["parameters_listed_twice"],
    "stepped_twice": ["gradients_used_twice"],
    "zeroed_before_the_step": ["steps_of_zero_gradients"],
    "every_step_skipped": ["scaler_skips_steps"],
    "every_fused_step_skipped": ["scaler_skips_steps"],
    "skipped_from_the_third_step": ["scaler_skips_steps"],
    "scale_never_removed": ["scale_left_in_gradients", "weights_not_finite"],
    "clipped_after_the_step": ["clipped_too_late"],
    "remainder_dropped": ["gradients_dropped"],
}
FAULTS_KEPT = {
    "made_for_each_pass": ["optimizer_remade"],
    "average_stands_still": ["average_not_updated"],
    "average_begun_anew": ["average_begun_anew"],
    "average_loaded_without_its_count": ["average_begun_anew"],
    "average_in_the_weights": ["kept_weights_written"],
    "best_saved_as_an_alias": ["kept_weights_saved"],
    "cosine_resumed": ["schedule_not_restored"],
    "new_cosine_on_a_loaded_optimizer": ["schedule_not_restored"],
    "steps_resumed": ["schedule_not_restored"],
    "sequence_resumed": ["schedule_not_restored"],
    "schedule_forgotten": ["schedule_not_stepped"],
    "schedule_of_passes_stepped_by_batches": ["schedule_turns"],
}

FAULTS_DAILY = {
    "softmax_over_rows": ["loss_of_softmax", "softmax_over_batch"],
    "log_softmax_over_rows": ["softmax_over_batch"],
    "schedule_stepped_by_micro_batches": ["schedule_moved_often"],
    "cosine_stepped_by_micro_batches": ["schedule_moved_often"],
    "cosine_shorter_than_the_training": ["schedule_passed_end"],
    "one_cycle_stepped_by_passes": ["schedule_unfinished"],
    "cosine_of_batches_stepped_by_passes": ["schedule_unfinished"],
    "average_is_clipped": ["clipped_nothing"],
    "generator_is_used_up": ["clipped_nothing"],
    "other_model_is_clipped": ["clipped_other_parameters"],
    "average_updated_before_the_step": ["average_before_step"],
    "copy_averaged_before_the_step": ["average_before_step"],
    "micro_batches_zeroed": ["micro_batches_zeroed"],
    "validation_shuffled_and_cut": ["validation_cut"],
    "targets_shifted_twice": ["labels_shifted_twice"],
    "padding_mask_inverted": ["attention_mask_inverted"],
}

FAULTS_SAVED = {
    "average_in_bfloat16": ["average_rounded_away"],
    "average_by_hand_in_bfloat16": ["average_rounded_away"],
    "groups_joined": ["group_options_mixed"],
    "loaded_while_frozen": ["optimizer_state_lost"],
    "loaded_flat_beside_gradients": ["optimizer_state_lost"],
    "schedule_free_saved_in_train_mode": ["saved_in_train_mode"],
    "sampler_resumed_in_the_first_order": ["resumed_without_epoch"],
    "sampler_resumed_from_a_file": ["resumed_without_epoch"],
}
ALL_FAULTS = FAULTS | FAULTS_KEPT | FAULTS_DAILY | FAULTS_SAVED
KINDS = ("", "_kept", "_daily", "_saved")
"""The endings of the files of faults, and of those of their neighbours."""


def trainings_of(file: str) -> list[str]:
    """Return the trainings of a file of toys: its functions without arguments."""
    tree = ast.parse((TOYS / file).read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.args.args]
    return [node.name for node in functions if not node.name.startswith("_")]


FILES = {
    **dict.fromkeys(FOUND, "trainings.py"),
    "evaluated_in_step_three": "trainings.py",
    **dict.fromkeys(STATES, "states.py"),
    **dict.fromkeys(SWITCHED, "switched.py"),
    **dict.fromkeys(HEALTHY, "healthy.py"),
    **{
        name: file
        for file in (f"{beginning}{kind}.py" for beginning in ("faults", "neighbours") for kind in KINDS)
        for name in trainings_of(file)
    },
}
"""The file of each training."""
EXPECTED = FOUND | STATES | SWITCHED | ALL_FAULTS
"""The checks that report, by training; none for others."""
COLD = ("plain", "compiled", "resumed_without_scheduler")
"""Trainings that are watched in interpreters of their own, which the watch enters before torch is imported."""

OPTIONS = {
    ("other_parameters", "--skip", "steps"): [],
    ("other_parameters", "--skip", "steps_without_gradients"): [],
    ("other_parameters", "--only", "steps"): ["steps_without_gradients"],
    ("other_parameters", "--only", "eval_mode"): [],
    ("evaluated_in_step_three",): [],
    ("evaluated_in_step_three", "--every", "3"): ["eval_mode"],
}


@pytest.fixture
def python(request: pytest.FixtureRequest, current_python: Path, warm_python: Path) -> Path:
    """The interpreter of a test's training."""
    return current_python if request.node.callspec.params.get("name") in COLD else warm_python


@pytest.mark.slow
@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_options_choose_the_checks_that_report(arguments: tuple[str, ...], python: Path, tmp_path: Path) -> None:
    name, *options = arguments
    found = watch(python, tmp_path, FILES[name], name, str(tmp_path / "watched.pt"), options=tuple(options))
    assert found == OPTIONS[arguments]


@pytest.mark.long(keep=50)
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_training_gives_its_findings_and_the_same_weights(
    name: str, python: Path, warm_python: Path, tmp_path: Path
) -> None:
    plain, watched = tmp_path / "plain.pt", tmp_path / "watched.pt"
    subprocess.run([warm_python, TOYS / FILES[name], name, plain], check=True, timeout=240)
    start = watch_by_command if name in COLD else watch
    assert start(python, tmp_path, FILES[name], name, str(watched)) == EXPECTED.get(name, [])
    assert have_same_bits(plain, watched)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["average_begun_anew", "average_loaded_without_its_count"])
def test_a_new_average_is_only_possibly_lost(name: str, warm_python: Path, tmp_path: Path) -> None:
    watch(warm_python, tmp_path, FILES[name], name, str(tmp_path / "watched.pt"))
    text = json.loads((tmp_path / "findings.jsonl").read_text("utf-8"))["text"]
    assert text.startswith("possible: ") == (name == "average_begun_anew")


def test_every_fault_has_a_training_and_every_training_its_findings() -> None:
    assert EXPECTED.keys() <= FILES.keys()
    assert {name for name, file in FILES.items() if file.startswith("faults")} == set(ALL_FAULTS)
