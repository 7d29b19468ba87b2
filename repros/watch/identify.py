"""From a finding to the documented failures that it may be.

A repro's header names the checks that find it (`finds`). Among those that name a check, the library that drives the
training decides, then the versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.match import AffectedState, Confidence
from repros.match.affected import check_affected
from repros.model import Outcome, Repro, Variant
from repros.watch.finding import Finding

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
    fitting = [pair for pair in named if _driver(pair[0]) in {None, *finding.wrappers}]
    ordered = sorted(fitting, key=lambda pair: _order(*pair, finding))
    best = {_order(*pair, finding)[:2] for pair in ordered[:1]}
    rivals = sum(_order(*pair, finding)[:2] in best for pair in ordered)
    return tuple(_identified(repro, variants, finding, rivals if place == 0 else 0) for place, (repro, variants) in
                 enumerate(ordered))


def checks_of(repro: Repro, variant: Variant) -> tuple[str, ...]:
    """Return the checks that are documented to find a variant: its own, or its repro's if it fails."""
    return variant.finds or (repro.finds if variant.outcome is Outcome.FAILS else ())


def _variants(repro: Repro, check: str) -> tuple[Variant, ...]:
    return tuple(variant for variant in repro.variants if check in checks_of(repro, variant))


def _driver(repro: Repro) -> str | None:
    return _DRIVERS.get(repro.path.parent.name)


def _order(repro: Repro, variants: Iterable[Variant], finding: Finding) -> tuple[int, bool, str]:
    state = check_affected(repro, variants, finding.versions).state
    return (state.order, _driver(repro) is None, repro.id)


def _identified(repro: Repro, variants: Iterable[Variant], finding: Finding, rivals: int) -> Identified:
    state = check_affected(repro, variants, finding.versions).state
    driver = _driver(repro)
    reasons = [f"{driver} drives the training" if driver else "", f"versions: {state.value}"]
    if finding.place is not None and finding.place.partition(":")[0].endswith(f"/{repro.path.name}"):
        return Identified(repro, Confidence.CERTAIN, "the program is the repro's own script")
    is_likely = rivals == 1 and state is AffectedState.AFFECTED
    return Identified(repro, Confidence.LIKELY if is_likely else Confidence.POSSIBLE, ", ".join(filter(None, reasons)))


