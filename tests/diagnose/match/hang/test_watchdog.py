"""The NCCL watchdog's lines, in the wordings of torch's releases and as people paste them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.diagnose.match.hang.find import find_log_hang
from repros.diagnose.match.hang.watchdog import WatchdogLines, WatchdogReport, read_watchdog
from repros.diagnose.match.log import decode_lines
from tests.diagnose.match.hang.public_logs import PublicLog, read_public_logs

WORK = "WorkNCCL(SeqNum=6, OpType=ALLREDUCE, {}Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out."
CAUGHT = "Watchdog caught collective operation timeout: "
LAST = ", last enqueued NCCL work: 8, last completed NCCL work: 5."
DETECTED = "Exception (either an error or timeout) detected by watchdog at"
FAILED = "failure detected by watchdog at work sequence id:"


def read(text: str) -> WatchdogLines:
    return read_watchdog(decode_lines(text.encode()))


def only(text: str) -> WatchdogReport:
    (report,) = read(text).reports
    return report


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        (f"[E ProcessGroupNCCL.cpp:737] [Rank 1] {CAUGHT}{WORK.format('')}", "ALLREDUCE"),
        (
            f"[E ProcessGroupNCCL.cpp:828] [Rank 1] {CAUGHT}{WORK.format('TensorShape=[4, 4], ')}",
            "ALLREDUCE of shape [4, 4]",
        ),
        (
            f"[rank1]:[E ProcessGroupNCCL.cpp:523] [Rank 1] {CAUGHT}{WORK.format('NumelIn=1, NumelOut=1, ')}",
            "ALLREDUCE of 1 element",
        ),
        (
            f"[rank1]:[E ProcessGroupNCCL.cpp:563] [PG 0 Rank 1] {CAUGHT}{WORK.format('NumelIn=2, NumelOut=4, ')}",
            "ALLREDUCE of 2 elements to 4",
        ),
    ],
)
def test_a_timeout_in_each_wording(line: str, operation: str) -> None:
    report = only(line)
    assert (report.rank, report.timed_out, report.ran_ms) == (1, {6: operation}, 1802710)


@pytest.mark.parametrize(
    "line",
    [
        f"[PG 0 Rank 3] Timeout at NCCL work: 6{LAST}",
        f"[PG 0 (default_pg) Rank 3] {DETECTED} work: 6{LAST}",
        f"[PG ID 0 PG GUID 0(default_pg) Rank 3] {DETECTED} work: 6{LAST}",
        f"[PG ID 0 PG GUID 0(default_pg) Rank 3]  {FAILED} 6 PG status: last enqueued work: 8, last completed work: 5",
    ],
)
def test_the_last_numbers_in_each_wording(line: str) -> None:
    report = only(f"[rank3]:[E ProcessGroupNCCL.cpp:1537] {line}")
    assert (report.rank, report.group, report.is_global) == (3, "0", True)
    assert (report.enqueued, report.completed, report.timed_out) == (8, 5, {6: ""})


def test_a_rank_that_only_got_the_signal_may_be_the_one_that_is_missing() -> None:
    lines = read(
        f"[rank0]:[E1 ProcessGroupNCCL.cpp:683] [Rank 0] {CAUGHT}WorkNCCL(SeqNum=22, OpType=ALLGATHER, "
        "NumelIn=4, NumelOut=8, Timeout(ms)=600000) ran for 600083 milliseconds before timing out.\n"
        f"[rank0]:[E1 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank 0]  {FAILED} 22 PG status: "
        "last enqueued work: 22, last completed work: 21\n"
        "[rank1]:[E1 ProcessGroupNCCL.cpp:1870] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump signal due to a "
        "collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 21, "
        "last completed NCCL work: 21.This is most likely caused by incorrect usages of collectives\n"
    )
    hang = find_log_hang(lines)
    (first,) = hang.disagreements
    assert (first.kind.value, first.number, first.missing, first.waiting) == ("missing", 22, (1,), (0,))
    assert hang.roots == (1,)


def test_the_stack_of_the_call_is_read_with_the_users_frame() -> None:
    report = only(
        f"[rank2]:[E1 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank 2]  {FAILED} 6 PG status: "
        "last enqueued work: 8, last completed work: 5\n"
        "[rank2]:[E1 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n"
        "#0 all_reduce from /env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:2968\n"
        "#1 wrapper from /env/lib/python3.12/site-packages/torch/distributed/c10d_logger.py:83\n"
        "#2 training_step from /home/user/train.py:44\n"
        "#3 <module> from <string>:1\n"
    )
    assert [frame.function for frame in report.frames] == ["all_reduce", "wrapper", "training_step", "<module>"]
    assert str(report.location) == "/home/user/train.py:44 training_step"


def test_torchs_own_comparison_is_taken() -> None:
    (desync,) = read(
        "\t - To our best knowledge, ranks [1, 2] are the lagging ranks that caused this timeout. "
        "They never joined any collectives\n"
    ).desyncs
    assert desync.never == (1, 2)
    lines = read(
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        "\t   - [0] joined but didn't finish collective #5 (count from 1)\n"
    )
    (found,) = find_log_hang(lines).disagreements
    assert (found.kind.value, found.waiting, found.number) == ("all wait", (0,), 5)


def test_lines_without_a_prefix_repeat_those_that_have_one() -> None:
    line = f"[Rank 1] {CAUGHT}{WORK.format('')}"
    lines = read(f"[rank5]:[E1 ProcessGroupNCCL.cpp:616] {line}\n  what():  [PG 1 Rank 1] terminated: {line}\n")
    assert [(report.rank, report.is_global) for report in lines.reports] == [(5, True)]


def test_a_log_without_these_lines_says_nothing() -> None:
    assert not find_log_hang(read("Epoch 1: loss 0.4 from a.py:3\nlast enqueued work\n")).has_waiting_ranks


@pytest.mark.parametrize("log", read_public_logs(), ids=lambda log: log.name)
def test_a_public_log_is_read_as_a_reader_reads_it(log: PublicLog) -> None:
    assert log.answer == (log.kind, log.waiting, log.missing), log.why


@given(
    st.text(
        alphabet="[]Rank 0123456789:,PGID()GUIDwork lastenqueuedcompletedNCCLWatchdog caught#from.py\n", max_size=400
    )
)
def test_any_text_is_read(text: str) -> None:
    for mark in ("", "Watchdog caught collective", "last enqueued NCCL work: 5, last completed NCCL work: 4 "):
        find_log_hang(read("x" + mark + text))
