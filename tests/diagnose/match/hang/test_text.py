"""The report of a hang: whole outputs."""

from __future__ import annotations

from repros.diagnose.match.hang.find import find_hang
from repros.diagnose.match.hang.json_format import hang_to_json
from repros.diagnose.match.hang.text import format_hang
from tests.diagnose.match.hang.made import STACK, content, dumps_of, entry
from tests.diagnose.match.hang.public_logs import read_public_logs

WAITS = content([entry(1), entry(2, state="scheduled", frames=STACK)], {"0": [0, 1, 2]})
LEFT = content([entry(1, frames=STACK)], {"0": [0, 1, 2]})
MISSING = find_hang(dumps_of({0: WAITS, 1: LEFT}))


def test_a_missing_rank() -> None:
    assert (
        format_hang(MISSING, 100).plain
        == """\
A hang: the other ranks wait for rank 1.
missing   rank 1 never called all_reduce of 4x2 Float, number 2 of the default group
waiting   rank 0, since 2023-11-14 22:13:20 UTC
absent    rank 2: nothing in the dumps
where     rank 1: after all_reduce of 4x2 Float in the default group, /home/user/train.py:31 step
          rank 0: in all_reduce of 4x2 Float in the default group, /home/user/train.py:31 step
There is no dump of rank 2, so the calls there are unknown. A process leaves no dump if it died, or
if its watchdog could not write one."""
    )


def test_its_json() -> None:
    assert hang_to_json(MISSING) == {
        "source": "dumps",
        "waited_for": [1],
        "circle": [],
        "disagreements": [
            {
                "kind": "missing",
                "group": "0",
                "group_ranks": [0, 1, 2],
                "number": 2,
                "calls": [{"call": "all_reduce of 4x2 Float", "ranks": [0]}],
                "waiting": [0],
                "missing": [1],
                "finished": [],
                "unknown": [],
                "absent": [2],
                "since_ns": 1_700_000_000_002_000_000,
            }
        ],
        "unanswered": [],
        "ranks": [
            {
                "rank": rank,
                "call": "all_reduce of 4x2 Float",
                "group": "0",
                "number": number,
                "state": state,
                "place": "/home/user/train.py:31 step",
            }
            for rank, number, state in ((0, 2, "scheduled"), (1, 1, "finished"))
        ],
        "reports": [],
        "notes": list(MISSING.notes),
    }


def test_other_calls_and_ranks_that_stand_still() -> None:
    groups = {"0": [0, 1]}
    differ = find_hang(
        dumps_of(
            {
                0: content([entry(1, "barrier", state="scheduled", input_sizes=[[1]])], groups),
                1: content([entry(1, state="scheduled")], groups),
            }
        )
    )
    assert (
        format_hang(differ, 100).plain
        == """\
A hang: the ranks call different collectives in the default group.
differ    number 1 of the default group is not the same call on all ranks
          rank 0: barrier of 1 Float
          rank 1: all_reduce of 4x2 Float
where     rank 0: in barrier of 1 Float in the default group
          rank 1: in all_reduce of 4x2 Float in the default group"""
    )
    stuck = find_hang(dumps_of({0: content([entry(1)], groups), 1: content([entry(1, state="started")], groups)}))
    assert (
        format_hang(stuck, 100).plain
        == """\
A hang: the other ranks wait for rank 1.
stuck     rank 1 has not completed all_reduce of 4x2 Float, number 1 of the default group; rank 0
          has: a device or the network is stuck there
where     rank 1: in all_reduce of 4x2 Float in the default group
          rank 0: after all_reduce of 4x2 Float in the default group"""
    )


def test_a_log() -> None:
    log = next(log for log in read_public_logs() if log.name == "pytorch-152623")
    assert (
        format_hang(log.hang, 100).plain
        == """\
A hang: the other ranks wait for rank 7.
missing   rank 7 never called the next collective, number 183 of the group that torch compared
waiting   ranks 0-6
also      1 group in which all ranks wait
where     rank 0: in ALLREDUCE of 6 elements, number 241; last enqueued 315, last completed 183"""
    )


def test_nothing_hangs() -> None:
    both = find_hang(dumps_of({rank: content([entry(1)], {"0": [0, 1]}) for rank in (0, 1)}))
    assert format_hang(both, 100).plain.splitlines()[0] == "No rank waits: every call in the dumps is completed."
