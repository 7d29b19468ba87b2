"""Ranks that begin with copies of one model and diverge, by what each wrote in its first eight steps."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence

from repros.diagnose.watch.events import Event
from repros.diagnose.watch.finding import Finding, from_event

TOLERANCE = 1e-3
"""Relative difference of two norms from which on ranks differ; an all-reduce leaves the same bits on every rank."""
_SAME = 1e-6
"""Relative difference up to which norms are those of one model, which different devices may have summed up."""


class Divergence:
    """The optimizers that several ranks have stepped eight times, and the runs in which ranks communicated."""

    def __init__(self) -> None:
        self._steps: dict[str, dict[int, Event]] = {}
        """The events `eighth_step` of each optimizer, by rank."""
        self._communicating: set[str] = set()

    def add(self, event: Event) -> None:
        """Record a rank's step-8 norms, or that it communicated a tensor as large as a parameter."""
        key = json.dumps(event["key"])
        if event["event"] == "communicated":
            self._communicating.add(key)
        else:
            self._steps.setdefault(key, {}).setdefault(event["rank"], event)

    def finish(self) -> Iterator[Finding]:
        """Yield the findings of the whole program: ranks may average their parameters late."""
        for by_rank in self._steps.values():
            events = [by_rank[rank] for rank in sorted(by_rank)]
            if json.dumps(events[0]["key"][:2]) in self._communicating:
                continue
            pairs = (pair for pair in itertools.combinations(events, 2) if _has_diverged(*pair))
            for one, other in itertools.islice(pairs, 1):
                numbers = {
                    f"norm of all {what}": {f"rank {event['rank']}": math.hypot(*event[key]) for event in (one, other)}
                    for what, key in (("parameters before step 1", "first"), ("parameters after step 8", "norms"))
                }
                yield from_event(one, numbers=numbers)


def _has_diverged(one: Event, other: Event) -> bool:
    if one["rates"] != other["rates"]:  # a search for the best learning rate
        return False
    differ = _differ(one["gradients"], other["gradients"], TOLERANCE) and _differ(one["norms"], other["norms"], 0.0)
    return differ and len(one["first"]) == len(other["first"]) and not _differ(one["first"], other["first"], _SAME)


def _differ(ours: Sequence[float], theirs: Sequence[float], tolerance: float) -> bool:
    pairs = list(zip(ours, theirs, strict=False))
    is_finite = all(map(math.isfinite, itertools.chain(*pairs)))
    return is_finite and any(abs(one - other) > tolerance * max(abs(one), abs(other)) for one, other in pairs)
