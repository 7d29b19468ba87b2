"""What a rank reads, draws, loads and compares: faults are found, their healthy neighbours are not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.diagnose.watch.watched import TOYS, have_same_bits, watch

pytestmark = pytest.mark.slow

FOUND = {
    "seeded_in_each_epoch": ["order_repeated", "draws_repeated"],
    "seeded_by_hand_in_each_epoch": ["draws_repeated"],
    "generator_in_each_epoch": ["order_repeated"],
    "weighted_the_same": ["order_repeated"],
    "workers_with_one_seed": ["draws_repeated_by_workers"],
    "workers_with_one_torch_seed": ["draws_repeated_by_workers"],
    "missing_values_read_by_each_worker": ["stream_repeated"],
    "broadcast_square": ["loss_broadcast"],
    "broadcast_turned": ["loss_broadcast"],
    "broadcast_squeezed": ["loss_broadcast"],
    "broadcast_mse": ["loss_broadcast"],
    "broadcast_l1": ["loss_broadcast"],
    "broadcast_huber": ["loss_broadcast"],
    "softmax_before": ["loss_of_softmax"],
    "softmax_before_on_pictures": ["loss_of_softmax"],
    "softmax_before_the_third_of_three": ["loss_of_softmax"],
    "no_log": ["loss_without_log"],
    "no_softmax": ["loss_without_log"],
    "sigmoid_before": ["loss_of_sigmoid"],
    "nothing_matches": ["nothing_loaded"],
    "nothing_matches_the_wrapped": ["nothing_loaded"],
    "initialised_after": ["initialised_after_load"],
    "evaluated_as_trained": ["evaluated_in_train_mode"],
}
HEALTHY = (
    *("generator_made_once", "seeded_by_the_epoch", "always_in_order", "validated_in_one_random_order"),
    *("sampled_with_one_seed", "one_batch_on_purpose", "made_anew_in_each_step", "two_loaders_side_by_side"),
    *("folds_with_one_seed", "rate_searched_with_the_same_seed", "workers_with_seeds_of_their_own"),
    *("workers_that_torch_seeds", "workers_that_draw_nothing", "workers_with_a_seed_for_each_sample"),
    *("validated_by_workers_with_one_seed", "same_shapes", "all_pairs", "pairs_among_predictions", "nearest_of_all"),
    *("one_for_each_output", "many_targets_for_each", "contrastive", "in_a_checkpoint", "log_softmax_before"),
    *("log_of_softmax", "softmax_inside", "distilled", "loaded_by_a_second_try", "backbone_loaded", "other_names"),
    *("head_initialised_after", "tested_then_initialised", "initialised_then_loaded", "evaluated_in_eval_mode"),
    "missing_values_shared_by_workers",
    *("monte_carlo", "statistics_anew", "taught_by_itself", "sampled_by_a_generator"),
)
"""Nearly the same as a fault, and meant."""


def script_of(name: str) -> str:
    """Return the file that has a training."""
    return next(file for file in ("data.py", "losses.py") if f"def {name}()" in (TOYS / file).read_text("utf-8"))


@pytest.mark.long(keep=22)
@pytest.mark.parametrize("name", [*FOUND, *HEALTHY])
def test_a_fault_is_found_and_its_healthy_neighbour_is_not(name: str, warm_python: Path, tmp_path: Path) -> None:
    assert watch(warm_python, tmp_path, script_of(name), str(tmp_path / "weights.pt"), name) == FOUND.get(name, [])


@pytest.mark.parametrize("script", ["data.py", "losses.py"])
def test_the_weights_are_the_same_without_the_watch(script: str, warm_python: Path, tmp_path: Path) -> None:
    plain, watched = tmp_path / "plain.pt", tmp_path / "watched.pt"
    names = [name for name in (*FOUND, *HEALTHY) if script_of(name) == script]
    subprocess.run([warm_python, TOYS / script, plain, *names], check=True, timeout=240)
    watch(warm_python, tmp_path, script, str(watched), *names)
    assert have_same_bits(plain, watched)


RANKS_FOUND = {
    "own_shuffle": ["share_of_other_order"],
    "split_by_chance": ["share_of_other_data"],
    "split_before": ["share_of_other_data"],
    "one_shuffle": ["ranks_fed_alike"],
    "no_sampler": ["ranks_fed_alike"],
    "no_sampler_and_missing_values": ["ranks_fed_alike"],
    "fed_by_name": ["ranks_fed_alike"],
    "shared_twice": ["share_of_share"],
    "not_wrapped": ["ranks_not_reduced"],
    "reduced_by_hand_from_other_weights": ["ranks_begin_apart"],
    "reduced_by_hand_but_one": ["parameter_not_reduced"],
    "divided_by_ranks": ["loss_divided_by_ranks"],
}
RANKS_HEALTHY = (
    *("shares", "shares_of_one_split", "orders_of_their_own", "parts_of_their_own", "one_batch"),
    "shares_with_missing_values",
    *("shared_by_accelerate", "reduced_by_hand", "reduced_in_one", "averaged_late", "ensemble", "search_for_a_rate"),
    *("one_model_on_both", "parts_of_a_model", "half_of_a_loss"),
)


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("name", [*RANKS_FOUND, *RANKS_HEALTHY])
def test_two_ranks_share_the_data_and_what_they_learn(name: str, warm_python: Path, tmp_path: Path) -> None:
    assert watch(warm_python, tmp_path, "shares.py", name) == RANKS_FOUND.get(name, [])
