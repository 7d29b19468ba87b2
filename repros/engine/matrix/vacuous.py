"""Documented outcomes that no measurement showed, and claims without an address. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from repros.engine.evidence import Evidence
from repros.model import Device, ExpectedOutcome, Repro


def unseen_outcomes(repros: Iterable[Repro], evidence: Evidence, bisections: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return `RPR-0002 unquantised: fails` for each variant whose documented outcome no measurement showed.

    A variant that fails has been seen to if it showed its signature, whatever the verdict's name. A fix has been seen
    to pass if it ran clean where a variant showed the failure, on the same stack and device. Elsewhere it shows
    nothing.

    Args:
        repros: the catalogue.
        evidence: all measurements.
        bisections: the records of all bisections, as their files have them.
    """
    failed, ran = set[tuple[str, str]](), set[tuple[str, str, str, Device]]()
    failing = set[tuple[str, str, Device]]()
    for unit, measurement in evidence.items():
        for name, seen in measurement.variants.items():
            if seen.verdict.shows_failure:
                failed.add((unit.repro, name))
                failing.add((unit.repro, unit.stack, unit.device))
            elif seen.verdict.ran_clean:
                ran.add((unit.repro, name, unit.stack, unit.device))
    for kept in bisections:
        if any(answer["answer"] == "yes" for answer in kept["answers"].values()):
            failed.add((kept["repro"], kept["variant"]))
    passed = {(repro, name) for repro, name, stack, device in ran if (repro, stack, device) in failing}
    return [
        f"{repro.id} {variant.name}: {variant.outcome}"
        for repro in repros
        for variant in repro.variants
        if (repro.id, variant.name) not in (failed if variant.outcome is ExpectedOutcome.FAILS else passed)
    ]


def unsourced_claims(repros: Iterable[Repro]) -> list[str]:
    """Return `RPR-0001 checked_value` for each variant with a claim and without a source."""
    return [
        f"{repro.id} {variant.name}"
        for repro in repros
        for variant in repro.variants
        if variant.claim and not variant.source
    ]
