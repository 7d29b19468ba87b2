"""From a finding to the documented failures that it may be.

A repro's header names the checks that find it (`finds`). Among those that name a check, the library that drives the
training decides, then the versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from repros.diagnose.match import AffectedState, Confidence
from repros.diagnose.match.affected import check_affected
from repros.diagnose.watch.finding import Finding
from repros.model import Ending, ExpectedOutcome, Repro, Variant

CRASH = "crash"
"""The check of an exception that ended the program."""

_DRIVERS = {"fabric": "fabric", "lightning": "trainer", "accelerate": "accelerate"}
"""What drives the training in the repros of a family; the other families need nothing but torch."""


@dataclass(frozen=True)
class Identified:
    """A repro that a finding may be."""

    repro: Repro
    confidence: Confidence
    why: str


def identify(finding: Finding, catalogue: Iterable[Repro]) -> tuple[Identified, ...]:
    """Return the repros that a finding may be, the most certain first."""
    named = [(repro, variants) for repro in catalogue if (variants := _variants(repro, finding.check))]
    # accelerate's hooks work without its Accelerator.
    drivers = {None, *finding.wrappers, *({"accelerate"} & finding.versions.keys())}
    fitting = [pair for pair in named if _driver(pair[0]) in drivers]
    ordered = sorted(fitting, key=lambda pair: _order(pair[0], pair[1], finding))
    ranks = [_order(repro, variants, finding)[:2] for repro, variants in ordered]
    # Only the first may be more than possible, and only if no other is as near.
    return tuple(
        _identified(repro, variants, finding, is_alone=place == 0 and ranks.count(ranks[0]) == 1)
        for place, (repro, variants) in enumerate(ordered)
    )


def checks_of(repro: Repro, variant: Variant) -> tuple[str, ...]:
    """Return the checks that are documented to find a variant.

    Those in its own header, those of its repro if it fails silently, `crash` if it raises anything but its script's own
    assert. A hang raises nothing.
    """
    if variant.outcome is not ExpectedOutcome.FAILS or variant.finds != repro.finds:
        return variant.finds
    is_silent = repro.silent and variant.signature.raises in {None, "AssertionError"}
    ends = variant.signature.ends
    is_hang = ends is not None and ends.ending is Ending.TIMED_OUT
    return repro.finds if is_silent or is_hang else (CRASH,)


def _variants(repro: Repro, check: str) -> tuple[Variant, ...]:
    return tuple(variant for variant in repro.variants if check in checks_of(repro, variant))


def _driver(repro: Repro) -> str | None:
    return _DRIVERS.get(repro.family)


def _order(repro: Repro, variants: Iterable[Variant], finding: Finding) -> tuple[int, bool, str]:
    state = check_affected(repro, variants, finding.versions).state
    return (state.order, _driver(repro) is None, repro.id)


def _identified(repro: Repro, variants: Iterable[Variant], finding: Finding, *, is_alone: bool) -> Identified:
    state = check_affected(repro, variants, finding.versions).state
    driver = _driver(repro)
    reasons = [f"{driver} drives the training" if driver else "", f"versions: {state.value}"]
    if finding.place is not None and finding.place.partition(":")[0].endswith(f"/{repro.path.name}"):
        return Identified(repro, Confidence.CERTAIN, "the program is the repro's own script")
    is_likely = is_alone and state is AffectedState.AFFECTED
    return Identified(repro, Confidence.LIKELY if is_likely else Confidence.POSSIBLE, ", ".join(filter(None, reasons)))
