"""The judge: derive the verdict from expectation and observation. Pure: equal values give equal verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from repros.engine.causes import RootCauses, find_causes
from repros.engine.signature import describe, matches
from repros.model import (
    Cell,
    CellResult,
    Expectation,
    ExpectedOutcome,
    Observation,
    Repeats,
    Verdict,
)


def judge(cell: Cell, observation: Observation) -> CellResult:
    """Compare an observation with what the repro documents for the cell's environment, and return the result."""
    expected = cell.expectation
    causes = find_causes(observation, cell.processes, lambda process: matches(process, expected.signature))
    verdict, reason = _verdict(expected, causes)
    if observation.deadlock:
        reason = f"{reason}, {observation.deadlock}"
    cause = causes.failed[0] if causes.failed else None
    signature = describe(cause, expected.signature) if cause else None
    return CellResult(cell, verdict, reason, signature, observation)


def combine(results: Sequence[CellResult]) -> CellResult:
    """Return one result for the repeats of one cell: the outcome that all share, or `flaky`.

    An outcome is a verdict with its signature. A repeat that could not be judged does not make a cell flaky and does
    not count as agreeing.
    """
    judged = [result for result in results if result.verdict is not Verdict.INFRA]
    if not judged:
        return replace(results[0], repeats=Repeats(len(results), 0))
    outcomes = Counter((result.verdict, result.signature) for result in judged)
    (usual, agreeing), *_ = outcomes.most_common()
    repeats = Repeats(len(results), agreeing)
    others = [result for result in judged if (result.verdict, result.signature) != usual]
    if not others:
        result = judged[0]
        unjudged = len(results) - len(judged)
        reason = (
            f"{result.reason}; {unjudged} of {len(results)} runs could not be judged" if unjudged else result.reason
        )
        return replace(result, reason=reason, repeats=repeats)
    counts = ", ".join(f"{n} {verdict}" + (f" ({text})" if text else "") for (verdict, text), n in outcomes.items())
    return replace(others[0], verdict=Verdict.FLAKY, reason=f"of {len(results)} runs: {counts}", repeats=repeats)


def _verdict(expected: Expectation, causes: RootCauses) -> tuple[Verdict, str]:
    should_fail = expected.outcome is ExpectedOutcome.FAILS
    if causes.broken:
        return Verdict.INFRA, causes.broken
    if not causes.failed:
        if causes.missing:
            return Verdict.DIFFERENT, f"{causes.missing} of the ranks never ran"
        if should_fail:
            return Verdict.GONE, "returned, although these versions are documented to fail"
        return Verdict.CLEAN, "returned, as expected"
    others = [process for process in causes.failed if not matches(process, expected.signature)]
    if others:
        return Verdict.DIFFERENT, f"{others[0].name} ended otherwise: {describe(others[0], expected.signature)}"
    witness = causes.failed[0].name
    if should_fail:
        return Verdict.REPRODUCED, f"{witness} showed the documented signature"
    if expected.is_fix:
        return Verdict.UNFIXED, f"{witness} showed the documented signature, although this variant is a fix"
    return (
        Verdict.REGRESSED,
        f"{witness} showed the documented signature, although these versions lie outside the range",
    )
