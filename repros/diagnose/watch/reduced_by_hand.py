"""Ranks that reduce their gradients by hand, by what each wrote before its eighth step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence

from repros.diagnose.watch.divergence import TOLERANCE
from repros.diagnose.watch.events import Event
from repros.diagnose.watch.finding import Finding, from_event

_SAME = 1e-6
"""Relative difference up to which two norms are those of one tensor, which different devices may have summed up."""
_MOST_NAMED = 3


class ReducedByHand:
    """The events `reduced_step` of each optimizer, by rank."""

    def __init__(self) -> None:
        self._steps: dict[str, dict[int, Event]] = {}

    def add(self, event: Event) -> None:
        """Record a rank's norms."""
        self._steps.setdefault(json.dumps(event["key"]), {}).setdefault(event["rank"], event)

    def finish(self) -> Iterator[Finding]:
        """Yield a finding of the first two ranks that differ, for each optimizer."""
        for by_rank in self._steps.values():
            events = [by_rank[rank] for rank in sorted(by_rank)]
            pairs = (finding for pair in itertools.combinations(events, 2) for finding in _compare(*pair))
            yield from itertools.islice(pairs, 1)


def _compare(one: Event, other: Event) -> Iterator[Finding]:
    sides = [[*one[name], *other[name]] for name in ("first", "gradients", "norms")]
    if one["shapes"] != other["shapes"] or not all(map(math.isfinite, itertools.chain(*sides))):
        return
    begin_apart = [*_differing(one["first"], other["first"], _SAME)]
    differing = [*_differing(one["gradients"], other["gradients"], TOLERANCE)]
    agreeing = [place for place, norm in enumerate(one["gradients"]) if place not in differing and norm > 0]
    if begin_apart and agreeing and not [*_differing(one["gradients"], other["gradients"], _SAME)]:
        text = (
            f"ranks reduce their gradients, and {len(begin_apart)} of {len(one['first'])} parameters were different"
            " before the first step: the ranks train different models"
        )
        yield from _finding("apart", text, (one, other), "before step 1", "first")
    elif differing and agreeing and not begin_apart:
        shapes = ", ".join(f"{place + 1} of shape {one['shapes'][place]}" for place in differing[:_MOST_NAMED])
        text = (
            f"possible: ranks reduce the gradients of {len(agreeing)} of {len(one['first'])} parameters, and not those"
            f" of number {shapes}"
        )
        yield from _finding("left_out", text, (one, other), "after step 7", "norms")


def _finding(check: str, text: str, pair: tuple[Event, Event], when: str, key: str) -> Iterator[Finding]:
    one, _ = pair
    numbers = {f"norm of all parameters {when}": {f"rank {event['rank']}": math.hypot(*event[key]) for event in pair}}
    if one["checks"][check] is not None:
        yield from_event({**one, "check": one["checks"][check], "text": text}, numbers=numbers)


def _differing(ours: Sequence[float], theirs: Sequence[float], tolerance: float) -> Iterator[int]:
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if abs(one - other) > tolerance * max(abs(one), abs(other)):
            yield place
