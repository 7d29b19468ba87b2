"""Processes that somebody else has ended: they say nothing about a repro, unless they explain nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repros.engine.judge import judge
from repros.model import Cell, Ending, Process, ProcessRole, Verdict
from tests.engine.test_judge import DOCUMENTED, EXIT, FAILS, FIX, KILL, OTHER, PEER, RETURNED, SHOWN, TERM, ends
from tests.factories import observation, process, raised

INTERRUPTED = process(1, Ending.RAISED, chain=(raised("", "builtins.KeyboardInterrupt"),))
SIGTERM_RAISED = process(
    1, Ending.RAISED, chain=(raised("", "lightning.pytorch.utilities.exceptions.SIGTERMException"),)
)
LEADER = process(None, Ending.RAISED, role=ProcessRole.LEADER, chain=(raised("quite another failure"),))
UNSEEN = process(0, Ending.SIGNALLED)

TABLE: list[tuple[Cell, tuple[Process, ...], Verdict, str | None]] = [
    # ended by somebody else
    (FAILS, (TERM, process(1)), Verdict.INFRA, "signal SIGTERM"),
    (FIX, (TERM, replace(PEER, rank=1)), Verdict.INFRA, "signal SIGTERM"),
    (FIX, (RETURNED, replace(TERM, rank=1, signal="SIGHUP")), Verdict.INFRA, "signal SIGHUP"),
    (FIX, (RETURNED, INTERRUPTED), Verdict.INFRA, "KeyboardInterrupt: "),
    (
        FIX,
        (PEER, INTERRUPTED),
        Verdict.INFRA,
        "RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [{host}]:4711",
    ),
    (
        FIX,
        (PEER, SIGTERM_RAISED),
        Verdict.INFRA,
        "RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [{host}]:4711",
    ),
    (
        FIX,
        (replace(LEADER, ending=Ending.SIGNALLED, signal="SIGTERM"), UNSEEN, replace(UNSEEN, rank=1)),
        Verdict.INFRA,
        "signal SIGTERM",
    ),
    (
        FIX,
        (replace(LEADER, chain=INTERRUPTED.chain), UNSEEN, replace(UNSEEN, rank=1)),
        Verdict.INFRA,
        "KeyboardInterrupt: ",
    ),
    (FIX, (LEADER, UNSEEN), Verdict.INFRA, "RuntimeError: quite another failure"),
    (FAILS, (LEADER, DOCUMENTED), Verdict.REPRODUCED, SHOWN),
    # a launcher ends the other ranks, and an interrupted rank explains nothing that another rank did by itself
    (FIX, (TERM, replace(EXIT, rank=1)), Verdict.DIFFERENT, "exit 1"),
    (FIX, (TERM, OTHER), Verdict.DIFFERENT, "RuntimeError: quite another failure"),
    (
        FIX,
        (replace(INTERRUPTED, rank=0), OTHER),
        Verdict.DIFFERENT,
        "RuntimeError: quite another failure",
    ),
    (
        ends("signal SIGINT"),
        (RETURNED, replace(KILL, signal="SIGINT")),
        Verdict.REPRODUCED,
        "signal SIGINT",
    ),
]


@pytest.mark.parametrize(("wanted", "processes", "verdict", "signature"), TABLE, ids=range(len(TABLE)))
def test_verdict(wanted: Cell, processes: tuple[Process, ...], verdict: Verdict, signature: str | None) -> None:
    result = judge(wanted, observation(*processes))
    assert (result.verdict, result.signature) == (verdict, signature)
