"""The order of causes, and what is a difference, on recordings made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.diagnose.compare.run import CompareResult, compare
from repros.diagnose.compare.text import equal_before, headline
from repros.model.errors import ReprosError
from tests.diagnose.compare.recorded import end, evaluation, forward, recording, rows, step, summary


def compared(tmp_path: Path, one: Sequence[Any], other: Sequence[Any], **options: Any) -> CompareResult:
    """Compare two runs, each the steps of one rank or a list of those of several."""
    ranks = [run if run and isinstance(run[0], list) else [run] for run in (one, other)]
    first, second = (recording(tmp_path / name, *of) for name, of in zip(("one", "two"), ranks, strict=True))
    return compare(first, second, **options)


ALL_AT_ONCE = [
    ("batch", {"passes": [forward([1.0, 9.0], 8.0, Net=[8.0, 8.0])]}),
    ("learning rate", {"groups": [{"options": {"lr": 0.2, "momentum": 0.0}, "names": ["weight"]}]}),
    ("parameter before the step", {"before": step(before=(7.0, 2.0))["before"]}),
    ("optimizer state", {"state": step(state={"momentum_buffer": (7.0, 2.0)})["state"]}),
    ("output of module", {"passes": [forward([1.0, 2.0], 1.0, Net=[8.0, 8.0])]}),
    ("loss", {"passes": [forward([1.0, 2.0], 8.0, Net=[3.0, 4.0])]}),
    ("gradient", {"gradients": step(gradient=(7.0, 0.5))["gradients"]}),
    ("parameter after the step", {"after": step(after=(7.0, 1.5))["after"]}),
]


@pytest.mark.parametrize("place", range(len(ALL_AT_ONCE)), ids=[stage for stage, _ in ALL_AT_ONCE])
def test_the_first_cause_is_named_though_all_that_follows_differs_too(tmp_path: Path, place: int) -> None:
    changes: dict[str, Any] = {}
    for _, change in reversed(ALL_AT_ONCE[place:]):
        changes |= change
    state = {"momentum_buffer": (1.0, 2.0)}
    changed = step(state=state) | changes
    found = compared(tmp_path, [step(state=state)] * 2, [step(state=state), changed]).difference
    assert found is not None
    assert found.stage == ALL_AT_ONCE[place][0]


def test_a_difference_says_what_differs_and_what_is_equal_before_it(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    result = compared(tmp_path, [step()] * 3, [step(), step(), step(rate=0.01)])
    assert headline(result) == sentences
    assert equal_before(result) == sentences


def test_equal_runs_have_the_same_bits(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    assert headline(compared(tmp_path, [step()] * 3, [step()] * 3)) == sentences


def test_what_rounding_explains_is_no_difference_unless_every_bit_counts(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    nearly = step(after=(0.5, 1.5 * (1 + 2**-23)))
    (tmp_path / "a").mkdir()
    result = compared(tmp_path / "a", [step()], [nearly])
    assert headline(result) == sentences
    (tmp_path / "b").mkdir()
    exact = compared(tmp_path / "b", [step()], [nearly], exact=True).difference
    assert exact is not None
    assert exact.text == sentences


def test_two_ranks_are_one_with_the_doubled_batch(tmp_path: Path) -> None:
    whole = step(forward([1.0, 2.0, 3.0, 4.0], 2.5, Net=[1.0, 2.0, 3.0, 4.0]))
    ranks = [[step(forward([1.0, 3.0], 2.0, Net=[1.0, 3.0]))], [step(forward([2.0, 4.0], 3.0, Net=[2.0, 4.0]))]]
    assert compared(tmp_path, [whole], ranks).difference is None


def test_four_passes_are_one_with_all_rows(tmp_path: Path) -> None:
    whole = step(forward([1.0, 2.0, 3.0, 4.0], 2.0, Net=[1.0, 2.0, 3.0, 4.0]))
    passes = [forward([value], value / 5, Net=[value]) for value in (1.0, 2.0, 3.0, 4.0)]
    assert compared(tmp_path, [whole], [step(*passes)]).difference is None


def test_a_loss_that_is_not_divided_is_found(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    whole = step(forward([1.0, 2.0], 1.5, Net=[1.0, 2.0]))
    passes = [forward([value], value, Net=[value]) for value in (1.0, 2.0)]
    answer = headline(compared(tmp_path, [whole], [step(*passes)]))
    assert answer == sentences


def test_a_rank_that_has_its_own_gradient_is_named(tmp_path: Path) -> None:
    found = compared(tmp_path, [[step()], [step()]], [[step()], [step(gradient=(3.0, 0.5))]]).difference
    assert found is not None
    assert (found.text, found.rank) == ("gradient of weight", "rank 1")


def test_rows_that_come_twice_are_named(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    ranks = [[step(forward([1.0, 2.0], Net=[1.0, 2.0]))], [step(forward([3.0, 4.0], Net=[3.0, 4.0]))]]
    twice = [ranks[0], ranks[0]]
    assert headline(compared(tmp_path, ranks, twice)) == sentences


def test_rows_of_an_earlier_step_are_named(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    steps = [step(forward([value], Net=[1.0])) for value in (1.0, 2.0)]
    found = compared(tmp_path, steps, [steps[0], steps[0]]).difference
    assert found is not None
    assert found.text == sentences


def test_an_order_of_rows_is_no_difference(tmp_path: Path) -> None:
    one, other = forward([1.0, 2.0], Net=[1.0, 2.0]), forward([2.0, 1.0], Net=[2.0, 1.0])
    assert compared(tmp_path, [step(one)], [step(other)]).difference is None


def test_a_resumed_run_is_compared_with_the_steps_after_it(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    steps = [step(rate=rate) for rate in (0.4, 0.3, 0.2, 0.1)]
    result = compared(tmp_path, steps, [*steps[2:3], step(rate=0.4)], offset=2)
    assert headline(result) == sentences


def test_a_state_that_one_run_lacks_is_a_difference(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    found = compared(tmp_path, [step(state={"exp_avg": (1.0, 1.0)})], [step()]).difference
    assert found is not None
    assert found.values == ("sum 2", "none")
    assert found.text == sentences


def test_a_missing_gradient_is_as_zeros(tmp_path: Path) -> None:
    assert compared(tmp_path, [step(gradient=(0.0, 0.0))], [step(gradient=None)]).difference is None


def test_a_run_that_ends_early_differs_in_its_number_of_steps(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    assert headline(compared(tmp_path, [step()] * 2, [step()])) == sentences


def test_parameters_that_one_optimizer_lacks_are_named(tmp_path: Path) -> None:
    groups = [{"options": {"lr": 0.1, "momentum": 0.0}, "names": ["weight", "new.weight"]}]
    found = compared(tmp_path, [step() | {"groups": groups}], [step()]).difference
    assert found is not None
    assert found.values == ("new.weight", "no others")


def test_nothing_to_compare_is_refused(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    with pytest.raises(ReprosError) as refused:
        compared(tmp_path, [step()], [])
    assert str(refused.value) == sentences


def test_parts_of_a_sharded_parameter_are_one_tensor(tmp_path: Path) -> None:
    values = (1.0, 2.0, 3.0, 4.0)
    both = forward([1.0, 2.0, 1.0, 2.0], Net=[3.0, 4.0, 3.0, 4.0])
    whole = step(both, before=values, gradient=values, after=values)
    ranks = []
    for held in ((1.0, 2.0, 3.0), (4.0,)):
        part = summary(held, [4]) | {"part": [len(held)]}
        ranks.append([step() | {name: {"weight": part} for name in ("before", "gradients", "after")}])
    assert compared(tmp_path, [whole], ranks).difference is None
    swapped = [ranks[1], ranks[0]]
    (tmp_path / "again").mkdir()
    assert compared(tmp_path / "again", [whole], swapped).difference is not None


def test_another_number_format_is_a_difference_whatever_the_tolerance(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    coarse = step() | {"before": {"weight": summary((1.0, 2.0), dtype="bfloat16")}}
    found = compared(tmp_path, [step()], [coarse]).difference
    assert found is not None
    assert found.values == ("float32", "bfloat16")
    assert found.text == sentences


def test_a_parameter_that_one_run_does_not_train_is_named(tmp_path: Path) -> None:
    found = compared(tmp_path, [step()], [step() | {"gradients": {}}]).difference
    assert found is not None
    assert (found.text, found.values) == ("gradient of weight", ("sum 1", "none"))


def test_an_evaluation_that_differs_is_named_with_what_became_of_the_steps(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    one = [step(), evaluation(), step(), evaluation(), end()]
    other = [step(), evaluation(), step(), evaluation(forward([1.0, 2.0], Net=[3.0, 8.0])), end()]
    result = compared(tmp_path, one, other)
    assert headline(result) == sentences
    assert equal_before(result) == sentences
    assert result.notes == ("no step differs",)


def test_a_step_that_differs_after_an_evaluation_does_is_a_note(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    one, other = (
        [evaluation(weight=weight), step(), step(rate=rate)] for weight, rate in (((1.0, 2.0), 1.0), ((3.0, 2.0), 2.0))
    )
    result = compared(tmp_path, one, other)
    assert headline(result) == sentences
    assert result.notes == sentences


def test_an_evaluation_of_one_run_alone_is_a_note_and_shifts_no_step(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    result = compared(tmp_path, [step(), evaluation(), step(), evaluation()], [step(), step()])
    assert headline(result) == sentences
    assert result.notes == sentences


def test_an_evaluation_is_one_however_its_rows_are_spread(tmp_path: Path) -> None:
    whole = evaluation(forward([1.0, 2.0, 3.0, 4.0], Net=[1.0, 2.0, 3.0, 4.0]))
    ranks = [[evaluation(forward([1.0, 3.0], Net=[1.0, 3.0]))], [evaluation(forward([2.0, 4.0], Net=[2.0, 4.0]))]]
    assert compared(tmp_path, [whole], ranks).difference is None
    (tmp_path / "again").mkdir()
    other = [ranks[0], [evaluation(forward([2.0, 4.0], Net=[2.0, 5.0]))]]
    assert compared(tmp_path / "again", [whole], other).difference is not None


def test_what_a_process_evaluates_in_several_parts_is_one_evaluation(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    parts = [evaluation(forward([value], Net=[value])) for value in (1.0, 2.0)]
    whole = evaluation(forward([1.0], Net=[1.0]), forward([2.0], Net=[2.0]))
    assert headline(compared(tmp_path, [step(), *parts], [step(), whole])) == sentences


@pytest.mark.parametrize(
    "changed",
    [
        end((0.5, 1.0)),
        end(rate=0.3),
        end(trained=["bias"]),
    ],
)
def test_a_state_without_a_step_is_seen_at_the_end(
    tmp_path: Path, changed: dict[str, Any], sentences: SnapshotAssertion
) -> None:
    result = compared(tmp_path, [step(), end()], [step(), changed])
    assert headline(result) == sentences


def test_models_of_one_name_are_compared_where_both_runs_have_equally_many(tmp_path: Path) -> None:
    one = [step(), end((0.5, 1.5), (1.0, 1.0))]
    found = compared(tmp_path, one, [step(), end((0.5, 1.5), (1.0, 2.0))]).difference
    assert found is not None
    assert found.text == "parameter weight (2)"
    (tmp_path / "again").mkdir()
    assert compared(tmp_path / "again", one, [step(), end((7.0, 7.0))]).difference is None


def test_a_program_that_evaluates_alone_resumes_after_the_last_step(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    one = [step(), evaluation(), step(), evaluation(weight=(0.5, 1.5))]
    same = compared(tmp_path, one, [evaluation(weight=(0.5, 1.5))], offset=2)
    assert headline(same) == sentences
    (tmp_path / "again").mkdir()
    assert headline(compared(tmp_path / "again", one, [evaluation(weight=(1.0, 2.0))], offset=2)) == sentences


def test_an_evaluation_that_is_not_recorded_whole_is_compared_pass_by_pass_alone(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    parts = [forward([value], Net=[value]) for value in (1.0, 2.0)]
    one = [step(), evaluation(*parts, cut=True)]
    result = compared(tmp_path, one, [step(), evaluation(forward([1.0, 2.0], Net=[1.0, 2.0]))])
    assert result.difference is None
    assert result.notes == sentences
    (tmp_path / "again").mkdir()
    other = [step(), evaluation(parts[0], forward([2.0], Net=[9.0]), cut=True)]
    assert compared(tmp_path / "again", one, other).difference is not None


def test_an_outermost_module_of_another_class_is_the_same_if_those_below_are(
    tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    one = evaluation(forward([1.0], layer=[1.0], Net=[1.0]))
    passes = forward([1.0], layer=[1.0], Changed=[2.0]) | {"inputs": {"Changed": rows(1.0)}, "roots": ["Changed"]}
    assert headline(compared(tmp_path, [one], [evaluation(passes)])) == sentences


def test_a_metric_of_another_class_is_the_same(tmp_path: Path, sentences: SnapshotAssertion) -> None:
    value = forward([1.0], 1.0, **{"Mean.compute()": [0.5]}) | {"inputs": {}, "roots": ["Mean.compute()"]}
    other = forward([1.0], 1.0, **{"Fixed.compute()": [0.1]}) | {"inputs": {}, "roots": ["Fixed.compute()"]}
    assert headline(compared(tmp_path, [evaluation(value)], [evaluation(other)])) == sentences


def test_a_metric_of_one_evaluation_alone_is_a_difference(tmp_path: Path) -> None:
    name = "Trainer.evaluate()[eval_loss]"
    found = compared(
        tmp_path, [evaluation(forward([1.0], 1.0, **{name: [0.5]}))], [evaluation(forward([1.0]))]
    ).difference
    assert found is not None
    assert (found.text, found.values) == (f"output of {name}", ("computed", "none"))
