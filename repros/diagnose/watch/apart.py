"""Ranks that begin with one model and train it apart, by what each wrote in its first steps."""

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
"""Relative difference of norms that are the same: one model, which a device or another may have summed up."""


class Apart:
    """The optimizers that several ranks have stepped eight times, and the runs in which something was sent."""

    def __init__(self) -> None:
        """Begin without any."""
        self._steps: dict[str, dict[int, Event]] = {}
        self._reduced: set[str] = set()

    def add(self, event: Event) -> None:
        """Take what a rank wrote in its eighth step, or that it has sent a parameter, or what is as large."""
        key = json.dumps(event["key"])
        if event["event"] == "reduced":
            self._reduced.add(key)
        else:
            self._steps.setdefault(key, {}).setdefault(event["rank"], event)

    def finish(self) -> Iterator[Finding]:
        """Yield what the whole program shows: ranks may average their parameters late."""
        for group in self._steps.values():
            events = [group[rank] for rank in sorted(group)]
            if json.dumps(events[0]["key"][:2]) in self._reduced:
                continue
            pairs = (pair for pair in itertools.combinations(events, 2) if _is_apart(*pair))
            for one, other in itertools.islice(pairs, 1):
                numbers = {
                    f"norm of all {what}": {f"rank {event['rank']}": math.hypot(*event[key]) for event in (one, other)}
                    for what, key in (("parameters before step 1", "first"), ("parameters after step 8", "norms"))
                }
                yield from_event(one, numbers=numbers)


def _is_apart(one: Event, other: Event) -> bool:
    if one["rates"] != other["rates"]:  # a search for the best
        return False
    differ = _differ(one["gradients"], other["gradients"], TOLERANCE) and _differ(one["norms"], other["norms"], 0.0)
    return differ and len(one["first"]) == len(other["first"]) and not _differ(one["first"], other["first"], _SAME)


def _differ(ours: Sequence[float], theirs: Sequence[float], tolerance: float) -> bool:
    pairs = list(zip(ours, theirs, strict=False))
    is_finite = all(map(math.isfinite, itertools.chain(*pairs)))
    return is_finite and any(abs(one - other) > tolerance * max(abs(one), abs(other)) for one, other in pairs)
