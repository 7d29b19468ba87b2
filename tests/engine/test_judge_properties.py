"""The judge, on observations that hypothesis makes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from repros.engine.judge import judge
from repros.engine.signature import matches
from repros.model import (
    Category,
    Cell,
    End,
    Ending,
    ExpectedOutcome,
    Observation,
    Process,
    ProcessRole,
    Signature,
    Verdict,
)
from tests.factories import cell, conditions, observation, raised, variant

FAILS = cell(ExpectedOutcome.FAILS)
FIX = cell(ExpectedOutcome.PASSES)
OUTSIDE = cell(variant=variant(affected=conditions("torch<2")))


def ends(text: str) -> Cell:
    return cell(variant=variant(signature=Signature(ends=End.parse(text))))


MESSAGES = st.sampled_from(
    ["the documented failure", "quite another", "Connection closed by peer", "No space left on device", ""]
)
LINKS = st.builds(
    raised,
    MESSAGES,
    st.sampled_from(["builtins.RuntimeError", "builtins.KeyError", "torch.distributed.DistNetworkError"]),
)


@st.composite
def process_lists(draw: st.DrawFn) -> tuple[Process, ...]:
    found = []
    for number in range(draw(st.integers(0, 4))):
        ending = draw(st.sampled_from(Ending))
        found.append(
            Process(
                pid=100 + number,
                role=draw(st.sampled_from(ProcessRole)),
                rank=draw(st.none() | st.integers(0, 2)),
                ending=ending,
                code=draw(st.sampled_from([1, 3])) if ending is Ending.EXITED else None,
                signal=draw(st.sampled_from(["SIGSEGV", "SIGKILL", "SIGTERM", None]))
                if ending is Ending.SIGNALLED
                else None,
                chain=tuple(draw(st.lists(LINKS, max_size=3))) if ending is Ending.RAISED else (),
                at=draw(st.sampled_from([0.5, 1.0])),
            )
        )
    return tuple(found)


CELLS = st.sampled_from(
    [FAILS, FIX, OUTSIDE, ends("hang"), ends("exit 3"), ends("signal SIGSEGV"), ends("signal SIGKILL")]
)


@given(wanted=CELLS, processes=process_lists(), seed=st.randoms())
def test_the_order_of_processes_does_not_matter(
    wanted: Cell, processes: tuple[Process, ...], seed: random.Random
) -> None:
    shuffled = list(processes)
    seed.shuffle(shuffled)
    first, second = (judge(wanted, observation(*order)) for order in (processes, shuffled))
    assert (first.verdict, first.reason, first.signature) == (second.verdict, second.reason, second.signature)


@given(wanted=CELLS, processes=process_lists())
def test_a_verdict_implies_its_evidence(wanted: Cell, processes: tuple[Process, ...]) -> None:
    seen: Observation = observation(*processes)
    result = judge(wanted, seen)
    matching = [process for process in seen.ranks if matches(process, wanted.expectation.signature)]
    failed = [process for process in seen.ranks if process.ending is not Ending.RETURNED]
    if result.verdict.shows_failure:
        assert matching
    if result.verdict.ran_clean:
        assert not failed
    if result.verdict.category is Category.AGREES:
        assert (result.verdict is Verdict.REPRODUCED) == (wanted.expectation.outcome is ExpectedOutcome.FAILS)
    assert result.verdict not in {Verdict.UNAVAILABLE, Verdict.FLAKY}
    assert result.reason
    assert result == judge(wanted, seen)
