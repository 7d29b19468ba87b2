"""The comparison of what ranks have written about the same step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from repros.watch.events import Event
from repros.watch.finding import Finding, from_event

TOLERANCE = 1e-3
"""Relative difference of two norms from which on ranks differ; an all-reduce leaves the same bits on every rank."""

_MOST_NAMES = 5


class Comparison:
    """Digests by module and step; each is compared with the first rank's."""

    def __init__(self) -> None:
        """Begin without any."""
        self._first: dict[str, Event] = {}
        self._facts: dict[str, list[Event]] = {}
        self._pending: list[Event] = []
        self._stepping: set[int] = set()
        self._waiting: dict[str, dict[int, Event]] = {}
        self._found: set[tuple[str, str]] = set()

    def add(self, event: Event) -> Iterator[Finding]:
        """Take an event; yield what it shows."""
        match event["event"]:
            case "stepping":
                self._stepping.add(event["pid"])
            case "fact":
                yield from self._compare_fact(event)
            case "waiting":
                yield from self._compare_waiting(event)
            case "moved":
                self._waiting.get(json.dumps(event["key"]), {}).pop(event["rank"], None)
            case "digest" if event["pending"]:
                self._pending.append(event)
            case "digest":
                yield from self._compare(event)

    def finish(self) -> Iterator[Finding]:
        """Yield what the gradients show of processes that never took an optimizer's step."""
        for event in self._pending:
            if not self._stepping:
                yield from self._compare(event)
        self._pending = []

    def _compare(self, event: Event) -> Iterator[Finding]:
        module = json.dumps(event["key"])
        key = json.dumps([module, event["what"], event["number"]])
        first = self._first.setdefault(key, event)
        if first is event or first["rank"] == event["rank"]:
            return
        differing = {name: numbers for name, *numbers in _differing(first, event)}
        # Parameters drift apart from the step on at which gradients differed.
        reported = (module, "gradients") in self._found or (module, event["what"]) in self._found
        if differing and not reported:
            self._found.add((module, event["what"]))
            yield _finding(first, event, differing)

    def _compare_fact(self, event: Event) -> Iterator[Finding]:
        others = self._facts.setdefault(json.dumps([event["check"], event["key"], event["number"]]), [])
        wants_same = event.get("wanted") != "different"
        for other in others:
            if other["rank"] != event["rank"] and (other["value"] == event["value"]) != wants_same:
                reported = (json.dumps(event["key"][:3]), event["check"])
                if reported not in self._found:
                    self._found.add(reported)
                    values = {f"rank {one['rank']}": one["value"] for one in (other, event)}
                    yield from_event(other, numbers={event["what"]: values}, step=event["number"] or None)
                return
        others.append(event)

    def _compare_waiting(self, event: Event) -> Iterator[Finding]:
        ranks = self._waiting.setdefault(json.dumps(event["key"]), {})
        ranks[event["rank"]] = event
        if len(ranks) < event["world"] or len({one["call"] for one in ranks.values()}) == 1:
            return
        text = "the ranks wait for one another: " + ", ".join(
            f"rank {rank} in {one['call']} ({one['place']})" for rank, one in sorted(ranks.items())[:_MOST_NAMES]
        )
        # The longest name says most.
        most = max(ranks.values(), key=lambda one: len(one["check"]))
        yield from_event(most, text=text)


def _differing(one: Event, other: Event) -> Iterator[tuple[str, str, tuple[float, float]]]:
    """Yield the names whose digests differ, with `norm`, or `sum` where the norms agree, and both ranks' numbers."""
    theirs = {name: pair for name, *pair in zip(other["names"], other["norms"], other["sums"], strict=True)}
    for name, norm, total in zip(one["names"], one["norms"], one["sums"], strict=True):
        if name not in theirs:
            continue
        other_norm, other_total = theirs[name]
        if not all(map(math.isfinite, (norm, total, other_norm, other_total))):
            continue
        size = max(norm, other_norm)
        if abs(norm - other_norm) > TOLERANCE * size:
            yield name, "norm", (norm, other_norm)
        elif abs(total - other_total) > TOLERANCE * size:
            yield name, "sum", (total, other_total)


def _finding(one: Event, other: Event, differing: Mapping[str, Any]) -> Finding:
    ranks = (one["rank"], other["rank"])
    when = " after this backward" if one["what"] == "gradients" else ""
    text = (
        f"{one['what']} differ between ranks {ranks[0]} and {ranks[1]}{when}: {len(differing)} of {one['total']}"
        " parameters of a DistributedDataParallel"
    )
    numbers: dict[str, Any] = {
        f"{measure} of {name}": {f"rank {rank}": value for rank, value in zip(ranks, values, strict=True)}
        for name, (measure, values) in list(differing.items())[:_MOST_NAMES]
    }
    return from_event(one, text=text, names=tuple(differing)[:_MOST_NAMES], numbers=numbers)
