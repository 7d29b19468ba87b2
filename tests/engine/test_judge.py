"""All verdicts, the root cause among ranks, and properties of any result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repros.engine.judge import judge
from repros.model import Cell, End, Ending, ExpectedOutcome, Process, ProcessRole, Signature, Verdict
from tests.factories import cell, conditions, observation, process, raised, variant

FAILS = cell(ExpectedOutcome.FAILS)
FIX = cell(ExpectedOutcome.PASSES)
OUTSIDE = cell(variant=variant(affected=conditions("torch<2")))

SHOWN = "RuntimeError: the documented failure"

RETURNED = process(0)
DOCUMENTED = process(1, Ending.RAISED)
OTHER = process(1, Ending.RAISED, chain=(raised("quite another failure"),))
OTHER_TYPE = process(1, Ending.RAISED, chain=(raised(type_="builtins.KeyError"),))
EXIT = process(0, Ending.EXITED, code=1)
SEGV = process(1, Ending.SIGNALLED, signal="SIGSEGV")
TERM = process(0, Ending.SIGNALLED, signal="SIGTERM")
KILL = process(1, Ending.SIGNALLED, signal="SIGKILL")
HUNG = process(0, Ending.TIMED_OUT)
STOPPED = process(0, Ending.STOPPED)
PEER = process(
    0,
    Ending.RAISED,
    at=0.5,
    chain=(raised("[../gloo/pair.cc:534] Connection closed by peer [127.0.0.1]:4711"),),
)
LAUNCHER = process(
    None,
    Ending.RAISED,
    role=ProcessRole.MAIN,
    at=0.5,
    chain=(
        raised(
            "-- Process 1 terminated with the following error: the documented failure",
            "torch.multiprocessing.spawn.ProcessRaisedException",
            bases=("torch.multiprocessing.spawn.ProcessException", "builtins.Exception"),
        ),
    ),
)
TORCHRUN = process(
    None,
    Ending.RAISED,
    role=ProcessRole.MAIN,
    at=2.0,
    chain=(raised("script.py FAILED", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"),),
)
DISK = process(1, Ending.RAISED, chain=(raised("[Errno 28] No space left on device", "builtins.OSError"),))
UNREADABLE = process(1, Ending.RAISED, chain=())


def ends(text: str) -> Cell:
    return cell(variant=variant(signature=Signature(ends=End.parse(text))))


TABLE: list[tuple[Cell, tuple[Process, ...], Verdict, str | None]] = [
    # everything returned
    (FAILS, (RETURNED, process(1)), Verdict.GONE, None),
    (FIX, (RETURNED, process(1)), Verdict.CLEAN, None),
    (OUTSIDE, (RETURNED, process(1)), Verdict.CLEAN, None),
    (FIX, (RETURNED,), Verdict.DIFFERENT, None),
    (FAILS, (RETURNED,), Verdict.DIFFERENT, None),
    # the documented signature
    (FAILS, (RETURNED, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (
        FIX,
        (RETURNED, DOCUMENTED),
        Verdict.UNFIXED,
        SHOWN,
    ),
    (
        OUTSIDE,
        (RETURNED, DOCUMENTED),
        Verdict.REGRESSED,
        SHOWN,
    ),
    # something else
    (
        FAILS,
        (RETURNED, OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (
        FIX,
        (RETURNED, OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (
        OUTSIDE,
        (RETURNED, OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (
        FAILS,
        (RETURNED, OTHER_TYPE),
        Verdict.DIFFERENT,
        "KeyError: the documented failure",
    ),
    (FAILS, (EXIT,), Verdict.DIFFERENT, "exit 1"),
    (FAILS, (RETURNED, SEGV), Verdict.DIFFERENT, "signal SIGSEGV"),
    (FAILS, (HUNG, process(1)), Verdict.DIFFERENT, "hang"),
    (
        FAILS,
        (RETURNED, UNREADABLE),
        Verdict.DIFFERENT,
        "an exception that could not be read",
    ),
    (
        FAILS,
        (process(0, Ending.SIGNALLED),),
        Verdict.DIFFERENT,
        "ended by an unknown signal",
    ),
    # two independent failures are not one
    (
        FAILS,
        (replace(OTHER, rank=0), DOCUMENTED),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (FAILS, (process(0, Ending.RAISED), SEGV), Verdict.DIFFERENT, SHOWN),
    # consequences are not the cause, even when they come first
    (FAILS, (PEER, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (PEER, OTHER), Verdict.DIFFERENT, "RuntimeError: quite another failure"),
    (FAILS, (EXIT, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (TERM, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (HUNG, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (STOPPED, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (LAUNCHER, RETURNED, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (FAILS, (TORCHRUN, TERM, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    (
        FAILS,
        (TORCHRUN, RETURNED, OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (FAILS, (LAUNCHER, RETURNED, SEGV), Verdict.DIFFERENT, "signal SIGSEGV"),
    # a consequence without a cause is judged itself
    (
        FAILS,
        (PEER, process(1)),
        Verdict.DIFFERENT,
        "RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [{host}]:4711",
    ),
    (FAILS, (STOPPED, process(1)), Verdict.DIFFERENT, "stopped"),
    # endings without an exception
    (
        ends("hang"),
        (HUNG, replace(HUNG, rank=1)),
        Verdict.REPRODUCED,
        "hang",
    ),
    (ends("hang"), (HUNG, process(1)), Verdict.REPRODUCED, "hang"),
    (
        ends("hang"),
        (HUNG, OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (ends("exit 1"), (EXIT, process(1)), Verdict.REPRODUCED, "exit 1"),
    (ends("exit 2"), (EXIT, process(1)), Verdict.DIFFERENT, "exit 1"),
    (ends("signal SIGSEGV"), (EXIT, SEGV), Verdict.REPRODUCED, "signal SIGSEGV"),
    (ends("signal SIGTERM"), (EXIT, TERM), Verdict.REPRODUCED, "signal SIGTERM"),
    (ends("signal SIGKILL"), (EXIT, KILL), Verdict.REPRODUCED, "signal SIGKILL"),
    # failures of the machine
    (
        FAILS,
        (RETURNED, DISK),
        Verdict.INFRA,
        "OSError: [Errno 28] No space left on device",
    ),
    (
        FIX,
        (PEER, DISK),
        Verdict.INFRA,
        "OSError: [Errno 28] No space left on device",
    ),
    (
        FIX,
        (RETURNED, KILL),
        Verdict.INFRA,
        "signal SIGKILL",
    ),
    (
        FAILS,
        (process(0, Ending.RAISED, chain=(raised("", "builtins.MemoryError"),)),),
        Verdict.INFRA,
        "MemoryError: ",
    ),
    # helpers do not count
    (
        FIX,
        (RETURNED, process(1), process(None, Ending.RAISED, role=ProcessRole.HELPER)),
        Verdict.CLEAN,
        None,
    ),
]


@pytest.mark.parametrize(("wanted", "processes", "verdict", "signature"), TABLE, ids=range(len(TABLE)))
def test_verdict(wanted: Cell, processes: tuple[Process, ...], verdict: Verdict, signature: str | None) -> None:
    result = judge(wanted, observation(*processes))
    assert (result.verdict, result.signature) == (verdict, signature)


def test_a_broken_run_is_infra_whatever_was_observed() -> None:
    result = judge(FAILS, observation(RETURNED, DOCUMENTED, broken="interrupted"))
    assert (result.verdict, result.reason) == (Verdict.INFRA, "interrupted")


@pytest.mark.parametrize(
    ("processes", "signature"),
    [
        ((RETURNED, process(1)), None),
        ((PEER, DOCUMENTED), "RuntimeError: the documented failure"),
        (
            (
                RETURNED,
                process(1, Ending.RAISED, chain=(raised("outer", "lib.Outer"), raised(), raised("root"))),
            ),
            "RuntimeError: the documented failure",
        ),
        (
            (
                RETURNED,
                process(1, Ending.RAISED, chain=(raised("outer", "lib.Outer"), raised("root", "lib.Root"))),
            ),
            "lib.Root: root",
        ),
    ],
)
def test_the_signature_is_that_of_the_link_that_matches_or_of_the_root(
    processes: tuple[Process, ...], signature: str | None
) -> None:
    assert judge(FAILS, observation(*processes)).signature == signature


@pytest.mark.parametrize("fault", ["SIGKILL", "SIGSTOP"])
def test_a_rank_that_waits_for_a_killed_one_does_not_show_a_documented_hang(fault: str) -> None:
    hangs = cell(variant=variant(signature=Signature(ends=End.parse("hang"))))
    seen = observation(process(0, Ending.TIMED_OUT, at=9.0), process(1, Ending.SIGNALLED, signal=fault))
    assert judge(hangs, seen).verdict is Verdict.INFRA


def test_the_lowest_of_several_failed_ranks_gives_the_signature() -> None:
    late = process(0, Ending.RAISED, at=2.0, chain=(raised("the documented failure, got -4"),))
    early = process(1, Ending.RAISED, at=1.0, chain=(raised("the documented failure, got -16"),))
    result = judge(cell(), observation(late, early))
    assert result.signature == "RuntimeError: the documented failure, got -4"


def test_the_reason_tells_which_evidence_showed_a_hang() -> None:
    hung = observation(HUNG, replace(HUNG, rank=1), deadlock="seen after 6.0 s, since no rank ran")
    result = judge(ends("hang"), hung)
    assert (result.verdict, result.signature) == (Verdict.REPRODUCED, "hang")
    assert result.reason.endswith(f", {hung.deadlock}")
