"""Which ranks a hang waits for: one group, several groups, and what dumps cannot tell."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from repros.diagnose.match.hang.disagree import DisagreementKind
from repros.diagnose.match.hang.find import find_hang, ranks_text
from tests.diagnose.match.hang.made import STACK, content, dumps_of, entry

PAIR = {"0": [0, 1]}
THREE = {"0": [0, 1, 2]}


def hang(ranks: dict[int, Any]) -> Any:
    return find_hang(dumps_of(ranks))


def kinds(found: Any) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(entry.kind.value, entry.number, entry.culprits) for entry in found.disagreements]


def test_a_rank_that_never_called_it_is_missing() -> None:
    waits = content([entry(1), entry(2), entry(3, state="scheduled", frames=STACK)], THREE)
    left = content([entry(1), entry(2, frames=STACK)], THREE)
    found = hang({0: waits, 1: left, 2: waits})
    (first,) = found.disagreements
    assert (first.kind, first.number, first.missing, first.waiting) == (DisagreementKind.MISSING, 3, (1,), (0, 2))
    assert found.roots == (1,)
    places = {rank: (call.number, str(call.location)) for rank, call in found.last}
    assert places == {rank: (number, "/home/user/train.py:31 step") for rank, number in ((0, 3), (1, 2), (2, 3))}
    assert found.notes == ()


def test_ranks_that_called_other_things_are_named_with_what_they_called() -> None:
    reduces = content([entry(1), entry(2, state="scheduled")], PAIR)
    waits = content([entry(1), entry(2, "barrier", state="scheduled", input_sizes=[[1]])], PAIR)
    (first,) = hang({0: waits, 1: reduces}).disagreements
    assert (first.kind, first.number) == (DisagreementKind.OTHER_CALL, 2)
    assert first.calls == (("barrier of 1 Float", (0,)), ("all_reduce of 4x2 Float", (1,)))
    assert first.culprits == ()


def test_sizes_and_types_count_and_shapes_do_not() -> None:
    def pair(**values: Any) -> list[tuple[str, int, tuple[int, ...]]]:
        ones = content([entry(1, state="scheduled")], PAIR)
        return kinds(hang({0: ones, 1: content([entry(1, state="scheduled", **values)], PAIR)}))

    assert pair(input_sizes=[[5, 2]]) == [("other call", 1, ())]
    assert pair(input_dtypes=["Half"]) == [("other call", 1, ())]
    assert pair(input_sizes=[[8]]) == [("all wait", 1, ())]
    assert pair(input_sizes=[[4, 2], [1]]) == [("other call", 1, ())]


def test_an_uneven_all_to_all_is_one_call() -> None:
    rows = {
        rank: content([entry(1, "all_to_all", state="scheduled", input_sizes=[[rank + 3, 2]])], PAIR) for rank in (0, 1)
    }
    assert kinds(hang(rows)) == [("all wait", 1, ())]


def test_a_gather_has_outputs_on_one_rank_and_a_scatter_inputs() -> None:
    both = {
        0: content([entry(1, "gather", state="scheduled", output_sizes=[[4, 2], [4, 2]])], PAIR),
        1: content([entry(1, "gather", state="scheduled", output_sizes=[])], PAIR),
    }
    assert kinds(hang(both)) == [("all wait", 1, ())]
    both = {
        0: content([entry(1, "scatter", state="scheduled", input_sizes=[[4, 2], [4, 2]])], PAIR),
        1: content([entry(1, "scatter", state="scheduled", input_sizes=[])], PAIR),
    }
    assert kinds(hang(both)) == [("all wait", 1, ())]


def test_a_rank_that_does_not_see_the_end_stands_still() -> None:
    done = content([entry(1), entry(2, state="scheduled")], THREE)
    stuck = content([entry(1, state="started")], THREE)
    found = hang({0: done, 1: stuck, 2: done})
    assert kinds(found) == [("missing", 2, (1,)), ("unfinished", 1, (1,))]
    assert found.roots == (1,)


def test_the_source_of_a_broadcast_may_go_on() -> None:
    source = content([entry(1, "broadcast"), entry(2, "broadcast")], PAIR)
    waits = content([entry(1, "broadcast", state="started")], PAIR)
    found = hang({0: source, 1: waits})
    assert kinds(found) == [("ahead", 1, ())]
    assert found.roots == ()


def test_where_all_wait_none_is_named() -> None:
    found = hang({rank: content([entry(1, state="started")], PAIR) for rank in (0, 1)})
    assert kinds(found) == [("all wait", 1, ())]
    assert found.roots == ()


def test_a_program_that_does_not_hang_says_nothing() -> None:
    found = hang({rank: content([entry(1), entry(2)], PAIR) for rank in (0, 1)})
    assert (found.has_waiting_ranks, found.disagreements) == (False, ())


def test_a_rank_without_a_dump_is_said_to_be_absent() -> None:
    found = hang({rank: content([entry(1), entry(2, state="scheduled")], THREE) for rank in (0, 1)})
    (first,) = found.disagreements
    assert (first.kind, first.absent, found.roots) == (DisagreementKind.ALL_WAIT, (2,), ())
    (note,) = found.notes
    assert ranks_text([2]) in note


def test_calls_that_the_ring_buffer_has_dropped_are_not_taken_for_missing() -> None:
    late = content([entry(number, state="completed") for number in range(41, 61)], PAIR)
    early = content([entry(number) for number in range(1, 60)], PAIR)
    early["entries"].append({**entry(60, state="scheduled"), "record_id": 59})
    found = hang({0: late, 1: early})
    assert kinds(found) == [("unfinished", 60, (1,))]
    (note,) = found.notes
    assert [part in note for part in (ranks_text([0]), "40", "TORCH_NCCL_TRACE_BUFFER_SIZE")] == [True] * 3


def test_a_group_that_the_ring_buffer_has_lost_is_unknown_and_not_missing() -> None:
    other = ("7", "")
    waits = content([entry(1, process_group=other, pg_id=1, state="scheduled")], {"7": [0, 1], "0": [0, 1]})
    gone = content([entry(900)], {"7": [0, 1], "0": [0, 1]})
    found = hang({0: waits, 1: gone})
    first = next(entry for entry in found.disagreements if entry.group == "7")
    assert (first.missing, first.unknown, found.roots) == ((), (1,), ())


def only_active(calls: list[dict[str, Any]], status: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """Return a dump with unfinished calls alone, of a rank in groups 3, 12 and 40, which are 1, 2 and 6 in it."""
    return content(calls, {"3": [0, 1], "12": [0, 1], "40": [0, 1]}, status)


def test_of_unfinished_calls_alone_the_last_numbers_tell_who_is_missing() -> None:
    group: dict[str, Any] = {"process_group": ("12", "TENSOR"), "pg_id": 2, "state": "scheduled"}
    waits = only_active([entry(51, **group), entry(52, **group)], {1: (9, 9), 2: (52, 50), 6: (4, 4)})
    idle = only_active([], {1: (9, 9), 2: (50, 50), 6: (4, 4)})
    found = hang({0: waits, 1: idle})
    assert kinds(found) == [("missing", 51, (1,))]
    assert found.roots == (1,)
    caught_up = only_active([], {1: (9, 9), 2: (52, 52), 6: (4, 4)})
    assert kinds(hang({0: waits, 1: caught_up})) == [("unfinished", 51, (0,))]


def test_without_last_numbers_it_is_not_known() -> None:
    group: dict[str, Any] = {"process_group": ("12", "TENSOR"), "pg_id": 2, "state": "scheduled"}
    waits = only_active([entry(51, **group)], {})
    (first,) = hang({0: waits, 1: only_active([], {})}).disagreements
    assert (first.kind, first.missing, first.unknown) == (DisagreementKind.ALL_WAIT, (), (1,))


def test_who_waits_is_followed_over_groups_to_who_waits_for_nobody() -> None:
    groups = {"0": [0, 1, 2, 3], "5": [0, 1], "6": [2, 3]}
    first: dict[str, Any] = {"process_group": ("5", "STAGE"), "pg_id": 1}
    second: dict[str, Any] = {"process_group": ("6", "STAGE"), "pg_id": 1}
    ranks = {
        0: content([entry(1, **first, state="scheduled")], groups),
        1: content([entry(1, "recv 1<-2", state="scheduled")], groups),
        2: content([entry(1, **second, state="scheduled")], groups),
        3: content([entry(1, "barrier")], groups),
    }
    for dump in ranks.values():  # rank 0 waits for 1, 1 for 2, 2 for 3
        dump["pg_config"]["0"]["desc"] = "default_pg"
    found = hang(ranks)
    assert found.roots == (3,)
    assert [(wait.rank, wait.peer) for wait in found.unanswered] == [(1, 2)]


def test_ranks_that_wait_for_each_other_are_a_circle() -> None:
    groups = {"0": [0, 1]}
    both = {
        0: content([entry(1, "recv 0<-1", state="scheduled")], groups),
        1: content([entry(1, "recv 1<-0", state="scheduled")], groups),
    }
    found = hang(both)
    assert (found.roots, found.circle) == ((), (0, 1))


def test_a_send_with_its_receive_waits_for_nobody() -> None:
    both = {
        0: content([entry(1, "send 0->1", state="scheduled")], PAIR),
        1: content([entry(1, "recv 1<-0", state="scheduled")], PAIR),
    }
    assert hang(both).unanswered == ()
    assert hang({**both, 1: content([entry(1, "recv 1<-?", state="scheduled")], PAIR)}).circle == ()


def test_a_group_without_stated_ranks_is_those_that_have_calls_or_dumps() -> None:
    def gloo(*entries: dict[str, Any]) -> dict[str, Any]:
        made = content(entries, {}, {0: (len(entries), 1)})
        return {**made, "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1, 2]"}}}

    one, two = entry(1), entry(2, state="scheduled")
    found = hang({0: gloo(one, two), 1: gloo(one), 2: gloo(one, two)})
    assert kinds(found) == [("missing", 2, (1,))]
    assert "default group" in found.notes[-1]


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8).filter(lambda lasts: len(set(lasts)) > 1))
def test_the_slowest_ranks_are_named_whatever_the_others_do(lasts: list[int]) -> None:
    """Each rank makes some calls; a call ends if every rank has made it."""
    least, ranks = min(lasts), list(range(len(lasts)))
    made = {
        rank: content(
            [entry(number, state="completed" if number <= least else "scheduled") for number in range(1, last + 1)]
            or [],
            {"0": ranks},
            {0: (last, least)} if last else {},
        )
        for rank, last in enumerate(lasts)
    }
    behind = tuple(rank for rank, last in enumerate(lasts) if last == least)
    found = hang(made)
    first = found.disagreements[0]
    if least:
        assert (first.kind, first.number, first.missing) == (DisagreementKind.MISSING, least + 1, behind)
        assert found.roots == behind
    else:  # a rank without any call has an empty dump, which cannot tell that it made none
        assert set(first.unknown) == set(behind)


def test_a_wait_is_followed_to_a_rank_without_a_dump() -> None:
    """Row 35: ranks 0 and 1 wait for 2, which waits in another group with rank 3, whose dump is lost."""
    groups = {"5": [0, 1, 2], "6": [2, 3]}
    shard: dict[str, Any] = {"process_group": ("5", ""), "pg_id": 0, "state": "scheduled"}
    stage: dict[str, Any] = {"process_group": ("6", ""), "pg_id": 1, "state": "scheduled"}
    waits = content([entry(1, **shard)], groups)
    found = hang({0: waits, 1: waits, 2: content([entry(1, **stage)], groups)})
    assert (found.roots, found.suspects) == ((), (3,))
    assert found.disagreements[0].missing == (2,)


def test_the_only_rank_without_a_dump_is_the_suspect() -> None:
    """Row 36."""
    waits = content([entry(1), entry(2, state="scheduled")], THREE)
    found = hang({0: waits, 1: waits})
    assert (found.roots, found.suspects) == ((), (2,))
    alone = hang({0: content([entry(1, state="scheduled")], {"0": range(8)})})
    assert (alone.roots, alone.suspects) == ((), ()), "somebody has passed one dump of eight"
    goes_on = hang({0: waits, 1: content([entry(1)], THREE)})
    assert (goes_on.roots, goes_on.suspects) == ((1,), ()), "a rank that is behind explains it"


def test_the_peer_without_a_dump_is_the_suspect() -> None:
    groups = {"0": [0, 1, 2, 3]}
    ranks = {rank: content([entry(1, f"recv {rank}<-{rank + 1}", state="scheduled")], groups) for rank in range(3)}
    assert (hang(ranks).roots, hang(ranks).suspects) == ((), (3,))


def opposite(*ranks: str) -> Any:
    """Return the hang of ranks that called the groups with these names in this order; all are in both groups."""
    groups = {"5": range(len(ranks)), "6": range(len(ranks))}
    made = {
        rank: content(
            [entry(1, process_group=(name, ""), pg_id=int(name), state="scheduled") for name in names], groups
        )
        for rank, names in enumerate(ranks)
    }
    return hang(made)


def test_two_groups_called_in_opposite_order_are_named() -> None:
    """Row 37."""
    found = opposite("56", "65", "56")
    assert (found.roots, found.circle, found.opposite) == ((), (0, 1), ("group 5", "group 6"))
    assert opposite("56", "56").opposite == ()


def test_the_status_decides_what_the_ring_buffer_has_lost() -> None:
    """Row 38: rank 0 has called number 11 and has not completed it, though its dump begins at 12."""
    cut = content([entry(number, state="scheduled") for number in (12, 13)], PAIR, {0: (13, 10)})
    cut["entries"].insert(0, {**entry(3, process_group=("7", ""), pg_id=1), "record_id": 0})
    cut["pg_config"]["7"] = {"name": "7", "desc": "", "ranks": "[0]"}
    whole = content([entry(number) for number in range(1, 11)] + [entry(11, state="scheduled")], PAIR, {0: (11, 10)})
    found = hang({0: cut, 1: whole})
    assert kinds(found) == [("missing", 12, (1,)), ("all wait", 11, ())][:1]
    assert found.roots == (1,)


def test_unfinished_calls_that_are_lost_are_told() -> None:
    """Row 39: both ranks wait in number 5, or in one of 3 and 4, which no buffer has."""
    cut = content([entry(number, state="scheduled") for number in (5, 6)], PAIR, {0: (6, 2)})
    found = hang({0: cut, 1: cut})
    assert kinds(found) == [("all wait", 5, ())]
    assert [part in found.notes[0] for part in ("from number 3 on", ranks_text([0, 1]))] == [True, True]


def test_a_device_that_has_not_begun_is_told() -> None:
    """Row 41."""
    states = {rank: "scheduled" if rank == 1 else "started" for rank in range(3)}
    found = hang({rank: content([entry(1, state=state)], THREE) for rank, state in states.items()})
    assert found.disagreements[0].not_started == (1,)
    assert (
        hang({rank: content([entry(1, state="started")], THREE) for rank in range(3)}).disagreements[0].not_started
        == ()
    )


def test_completed_calls_that_differ_are_named() -> None:
    """Row 42: with NCCL such calls end, with wrong numbers."""
    both = {0: content([entry(1), entry(2)], PAIR), 1: content([entry(1), entry(2, input_dtypes=["Half"])], PAIR)}
    found = hang(both)
    (mismatch,) = found.mismatches
    assert (found.has_waiting_ranks, found.has_findings, mismatch.number) == (False, True, 2)
    assert mismatch.calls == (("all_reduce of 4x2 Float", (0,)), ("all_reduce of 4x2 Half", (1,)))


def test_a_dump_of_another_rank_or_another_run_is_noted() -> None:
    """Row 43."""
    send = content([entry(1, "send 0->1")], PAIR)
    (note,) = hang({1: send}).notes[-1:]
    assert [part in note for part in ("dump_1", "rank 0")] == [True, True]
    day = 24 * 3_600 * 10**9
    old = content([entry(1, time_created_ns=1_700_000_000_000_000_000 - day)], PAIR)
    notes = hang({0: content([entry(1)], PAIR), 1: old}).notes
    assert "rank 1 is up to 24 hours older" in notes[-1]
    assert hang({rank: content([entry(1)], PAIR) for rank in (0, 1)}).notes == ()


def test_ranks_are_written_in_spans() -> None:
    assert [ranks_text(ranks) for ranks in ([3], [0, 1], [0, 1, 2, 5, 7, 8], [2, 2])] == [
        *("rank 3", "ranks 0, 1", "ranks 0-2, 5, 7, 8", "rank 2")
    ]
