"""Digests of ranks are compared; what only one rank has, or no number can tell, is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from syrupy.assertion import SnapshotAssertion

from repros.diagnose.watch.compare import Comparison
from repros.diagnose.watch.finding import Finding

NAN = float("nan")


def digest(rank: int, norms: list[float], sums: list[float] | None = None, **changed: Any) -> dict[str, Any]:
    names = [f"layer{place}.weight" for place in range(len(norms))]
    event: dict[str, Any] = {
        "event": "digest",
        "check": "gradients_differ",
        "what": "gradients",
        "key": ["run", [0, 1], 0, None, 2],
    }
    event |= {"number": 1, "pending": False, "rank": rank, "pid": 100 + rank, "names": names, "norms": norms}
    return event | {"sums": sums or norms, "total": len(norms), "place": "train.py:3 step"} | changed


def fact(rank: int, value: Any, **changed: Any) -> dict[str, Any]:
    event: dict[str, Any] = {"event": "fact", "check": "precision_differs", "what": "precision", "text": "ranks differ"}
    event |= {"key": ["run", [0, 1], 0], "number": 1, "rank": rank, "pid": 100 + rank, "value": value}
    return event | changed


def compare(*events: dict[str, Any]) -> list[Finding]:
    """Return what events show; it is the same if the last rank writes first."""
    orders = (events, sorted(events, key=lambda event: -event.get("rank", 0)))
    found, turned = (compare_in_order(order) for order in orders)
    assert turned == found
    return found


def compare_in_order(events: Sequence[dict[str, Any]]) -> list[Finding]:
    comparison = Comparison()
    found = [finding for event in events for finding in comparison.add(event)]
    return [*found, *comparison.finish()]


def test_gradients_that_differ_are_found_with_both_numbers(sentences: SnapshotAssertion) -> None:
    (finding,) = compare(digest(0, [4.0, 1.0]), digest(1, [16.0, 1.0]))
    assert finding.text == sentences
    assert finding.numbers == {"norm of layer0.weight": {"rank 0": 4.0, "rank 1": 16.0}}
    assert (finding.step, finding.place) == (1, "train.py:3 step")


def test_equal_norms_of_opposite_sign_differ() -> None:
    (finding,) = compare(digest(0, [2.0], [2.0]), digest(1, [2.0], [-2.0]))
    assert finding.numbers == {"sum of layer0.weight": {"rank 0": 2.0, "rank 1": -2.0}}


def test_rounding_and_numbers_that_are_none_say_nothing() -> None:
    assert compare(digest(0, [1.0, NAN]), digest(1, [1.0 + 1e-6, 5.0])) == []


def test_other_steps_and_modules_and_the_same_rank_are_not_compared() -> None:
    assert compare(digest(0, [1.0]), digest(1, [2.0], number=2)) == []
    assert compare(digest(0, [1.0]), digest(1, [2.0], key=["run", [0, 1], 1, None, 1])) == []
    assert compare(digest(0, [1.0]), digest(0, [2.0])) == []


def test_parameters_that_drift_after_their_gradients_are_not_reported_again() -> None:
    where: dict[str, Any] = {"what": "parameters", "check": "parameters_differ"}
    found = compare(digest(0, [1.0]), digest(1, [2.0]), digest(0, [1.0], **where), digest(1, [2.0], **where))
    assert [finding.check for finding in found] == ["gradients_differ"]


def test_gradients_after_a_backward_count_only_in_a_program_without_steps() -> None:
    pending = [digest(0, [1.0], pending=True), digest(1, [2.0], pending=True)]
    assert len(compare(*pending)) == 1
    assert compare(*pending, {"event": "stepping", "pid": 100}) == []


def test_a_fact_that_ranks_must_share_is_found_once_with_their_values() -> None:
    found = compare(
        fact(0, "bfloat16"), fact(1, "float32"), fact(0, "bfloat16", number=2), fact(1, "float32", number=2)
    )
    assert [(finding.check, finding.text, finding.step) for finding in found] == [
        ("precision_differs", "ranks differ", 1)
    ]
    assert found[0].numbers == {"precision": {"rank 0": "bfloat16", "rank 1": "float32"}}
    assert compare(fact(0, "float32"), fact(1, "float32"), fact(0, "bfloat16", number=2)) == []


def test_a_fact_that_ranks_must_not_share_is_found() -> None:
    share = {"check": "share_repeated", "what": "DistributedSampler.rank", "wanted": "different", "number": 0}
    (finding,) = compare(fact(0, 0, **share), fact(1, 0, **share))
    assert finding.numbers == {"DistributedSampler.rank": {"rank 0": 0, "rank 1": 0}}
    assert finding.step is None
    assert compare(fact(0, 0, **share), fact(1, 1, **share)) == []


def waiting(rank: int, call: str, **changed: Any) -> dict[str, Any]:
    event = {"event": "waiting", "check": "ranks_wait_apart", "key": ["run", 2], "world": 2, "rank": rank, "call": call}
    return event | {"pid": 100 + rank, "place": f"train.py:{rank} step"} | changed


def test_the_lowest_ranks_that_differ_are_named_whichever_writes_first() -> None:
    key: Any = ["run", [0, 1, 2], 0, None, 1]
    digests = [digest(rank, [norm], key=key) for rank, norm in enumerate([1.0, 1.0, 2.0])]
    facts = [fact(rank, value, key=key) for rank, value in enumerate(["float32", "bfloat16", "float16"])]
    for order in permutations(digests):
        (finding,) = compare_in_order(order)
        assert finding.numbers["norm of layer0.weight"].keys() == {"rank 0", "rank 2"}
        assert finding.rank == 0
    for order in permutations(facts):
        (finding,) = compare_in_order(order)
        assert finding.numbers == {"precision": {"rank 0": "float32", "rank 1": "bfloat16"}}


def test_a_step_that_one_rank_never_reaches_is_compared_at_the_end() -> None:
    key: Any = ["run", [0, 1, 2], 0, None, 1]
    comparison = Comparison()
    assert [*comparison.add(digest(2, [1.0], key=key)), *comparison.add(digest(1, [2.0], key=key))] == []
    (finding,) = comparison.finish()
    assert finding.numbers["norm of layer0.weight"].keys() == {"rank 1", "rank 2"}


def test_ranks_that_wait_in_different_calls_wait_for_one_another(sentences: SnapshotAssertion) -> None:
    (finding,) = compare(waiting(0, "barrier", check="ranks_wait_apart_saving"), waiting(1, "backward"))
    assert finding.text == sentences
    assert (finding.check, finding.place) == ("ranks_wait_apart_saving", "train.py:0 step")


def test_ranks_in_one_call_and_those_that_went_on_do_not() -> None:
    assert compare(waiting(0, "barrier"), waiting(1, "barrier")) == []
    moved = {"event": "moved", "key": ["run", 2], "rank": 0, "pid": 100}
    assert compare_in_order([waiting(0, "barrier"), moved, waiting(1, "backward")]) == []
    assert compare(waiting(0, "barrier", world=3), waiting(1, "backward", world=3)) == []


def changed(rank: int, before: list[float], after: list[float], **others: Any) -> dict[str, Any]:
    event = digest(rank, after, check="gradients_changed_apart", what="changed", key=["run", [0, 1], 0])
    return event | {"event": "changed", "before": [before, before]} | others


def test_gradients_that_were_alike_and_are_not_at_the_step_are_found(sentences: SnapshotAssertion) -> None:
    (finding,) = compare(changed(0, [4.0, 3.0], [2.0, 3.0]), changed(1, [4.0, 5.0], [1.0, 5.0]))
    assert finding.check == "gradients_changed_apart"
    assert finding.text == sentences
    assert finding.numbers == {"norm of layer0.weight": {"rank 0": 2.0, "rank 1": 1.0}}


def test_gradients_that_differed_before_are_not_compared() -> None:
    assert compare(changed(0, [4.0, 0.0], [4.0, 0.0]), changed(1, [4.1, 0.0], [1.0, 0.0])) == []
    assert compare(changed(0, [NAN], [NAN]), changed(1, [NAN], [1.0])) == []


def test_gradients_that_change_alike_are_not_found() -> None:
    assert compare(changed(0, [4.0], [2.0]), changed(1, [4.0], [2.0])) == []


def eighth_step(rank: int, gradient: float, **changed: Any) -> dict[str, Any]:
    event = {
        "event": "eighth_step",
        "check": "ranks_not_reduced",
        "key": ["run", [0, 1], 0, 1],
        "number": 8,
        "text": "ranks diverge",
    }
    numbers = {"first": [1.0], "norms": [gradient], "gradients": [gradient], "rates": [0.1]}
    return event | {"rank": rank, "pid": 100 + rank, "place": None} | numbers | changed


def test_ranks_that_begin_with_one_model_and_do_not_communicate_have_diverged() -> None:
    (finding,) = compare(eighth_step(0, 2.0), eighth_step(1, 3.0))
    assert finding.numbers["norm of all parameters after step 8"] == {"rank 0": 2.0, "rank 1": 3.0}
    assert finding.step == 8


def test_ranks_that_differ_from_the_beginning_or_agree_or_communicate_have_not() -> None:
    assert compare(eighth_step(0, 2.0), eighth_step(1, 3.0, first=[1.1])) == []
    assert compare(eighth_step(0, 2.0), eighth_step(1, 3.0, rates=[0.2])) == []
    assert compare(eighth_step(0, 2.0), eighth_step(1, 2.0)) == []
    assert compare(eighth_step(0, NAN), eighth_step(1, 2.0)) == []
    late = {"event": "communicated", "key": ["run", [0, 1]], "rank": 1, "pid": 101}
    assert compare(eighth_step(0, 2.0), eighth_step(1, 3.0), late) == []


def test_workers_that_draw_the_same_count_only_in_a_pass_that_is_trained_on() -> None:
    details: dict[str, Any] = {"check": "draws_repeated_by_workers", "what": "state", "wanted": "different"}
    details |= {"passed": "1-2", "key": ["workers", [0, 1], "1-2", "Python"], "number": 0}
    facts = [fact(0, [1, 2], worker=worker, **details) for worker in (0, 1)]
    trained = {"event": "trained_on", "passed": "1-2", "rank": 0, "pid": 100}
    assert compare(*facts) == []
    for events in ([*facts, trained], [trained, *facts], [facts[0], trained, facts[1]]):
        (finding,) = compare(*events)
        assert finding.numbers == {"state": {"worker 0": [1, 2], "worker 1": [1, 2]}}
    assert compare(trained, facts[0], fact(0, [3, 4], worker=1, **details)) == []
