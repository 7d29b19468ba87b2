"""The report of a hang, in one snapshot, and its JSON."""

from __future__ import annotations

from typing import Any

from syrupy.assertion import SnapshotAssertion

from repros.diagnose.match.hang.find import Hang, find_hang
from repros.diagnose.match.hang.json_format import hang_to_json
from repros.diagnose.match.hang.text import format_hang
from tests.diagnose.match.hang.made import STACK, content, dumps_of, entry
from tests.diagnose.match.hang.public_logs import read_public_logs

WAITS = content([entry(1), entry(2, state="scheduled", frames=STACK)], {"0": [0, 1, 2]})
LEFT = content([entry(1, frames=STACK)], {"0": [0, 1, 2]})
MISSING = find_hang(dumps_of({0: WAITS, 1: LEFT}))


TWO = {"0": [0, 1]}
OTHER_CALLS = find_hang(
    dumps_of(
        {
            0: content([entry(1, "barrier", state="scheduled", input_sizes=[[1]])], TWO),
            1: content([entry(1, state="scheduled")], TWO),
        }
    )
)
STUCK = find_hang(dumps_of({0: content([entry(1)], TWO), 1: content([entry(1, state="started")], TWO)}))
NONE = find_hang(dumps_of({rank: content([entry(1)], TWO) for rank in (0, 1)}))
RING = {"7": [0, 1], "0": [0, 1]}
LOST = find_hang(
    dumps_of(
        {
            0: content([entry(1, process_group=("7", ""), pg_id=1, state="scheduled")], RING),
            1: content([entry(900)], RING),
        }
    )
)

PIPELINE = {"5": [0, 1, 2], "6": [2, 3]}
"""Two groups; rank 2 is in both."""
STAGE: dict[str, Any] = {"process_group": ("6", "STAGE"), "pg_id": 1, "state": "scheduled"}
SHARD: dict[str, Any] = {"process_group": ("5", "SHARD"), "pg_id": 0, "state": "scheduled"}
SUSPECT = find_hang(
    dumps_of(
        {
            0: content([entry(1, **SHARD)], PIPELINE),
            1: content([entry(1, **SHARD)], PIPELINE),
            2: content([entry(1, **STAGE)], PIPELINE),
        }
    )
)
BOTH = {"5": [0, 1], "6": [0, 1]}
OPPOSITE = find_hang(
    dumps_of(
        {
            0: content([entry(1, **SHARD), entry(1, **STAGE)], BOTH),
            1: content([entry(1, **STAGE), entry(1, **SHARD)], BOTH),
        }
    )
)
COMPLETED = find_hang(
    dumps_of({0: content([entry(1)], TWO), 1: content([entry(1, input_dtypes=["Half"])], TWO)}),
)
NOT_BEGUN = find_hang(
    dumps_of({rank: content([entry(1, state=state)], TWO) for rank, state in enumerate(("scheduled", "started"))})
)


def test_reports(snapshot: SnapshotAssertion) -> None:
    log = next(log for log in read_public_logs() if log.name == "pytorch-152623").hang
    reports = {
        "different calls": format_hang(OTHER_CALLS, 100).plain,
        "no hang": format_hang(NONE, 100).plain,
        # The snapshot of `repros match` has the first line of these.
        "a rank that is stuck": below(STUCK),
        "the lines of the watchdog": below(log),
        "a call that the ring buffer has lost": below(LOST),
        "a rank without a dump": "\n".join(MISSING.notes),
        "a rank without a dump that the others wait for": format_hang(SUSPECT, 100).plain,
        "groups in opposite order": format_hang(OPPOSITE, 100).plain,
        "different calls that are completed": format_hang(COMPLETED, 100).plain,
        "a device that has not begun": format_hang(NOT_BEGUN, 100).plain,
    }
    assert snapshot == "\n\n".join(f"# {name}\n{text}" for name, text in reports.items())


def below(hang: Hang) -> str:
    """Return a report without its first line."""
    return format_hang(hang, 100).plain.partition("\n")[2]


def test_its_json() -> None:
    assert hang_to_json(MISSING) == {
        "source": "dumps",
        "waited_for": [1],
        "suspects": [],
        "opposite_order": [],
        "mismatches": [],
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
                "not_started": [],
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
