"""The comparison of what ranks have written about the same step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from repros.diagnose.watch.apart import TOLERANCE, Apart
from repros.diagnose.watch.events import Event
from repros.diagnose.watch.finding import Finding, from_event

_SAME = 1e-6
"""Relative difference up to which two ranks have the same gradient: what they reduced together has the same bits."""

_MOST_NAMES = 5


class Comparison:
    """What ranks have written about the same step, compared once all of them have; the order of events is no matter."""

    def __init__(self) -> None:
        """Begin without any."""
        self._groups: dict[str, dict[int, Event]] = {}
        """The digests and facts of one step that are not compared yet, by rank."""
        self._pending: list[Event] = []
        self._stepping: set[int] = set()
        self._waiting: dict[str, dict[int, Event]] = {}
        self._found: set[tuple[str, str]] = set()
        self._apart = Apart()
        self._held: dict[str, list[Event]] = {}
        """What the workers of a pass wrote that nothing was trained on so far, by the pass."""
        self._trained: set[str] = set()

    def add(self, event: Event) -> Iterator[Finding]:
        """Take an event; yield what it shows."""
        match event["event"]:
            case "stepping":
                self._stepping.add(event["pid"])
            case "waiting":
                yield from self._compare_waiting(event)
            case "moved":
                self._waiting.get(json.dumps(event["key"]), {}).pop(event["rank"], None)
            case "digest" if event["pending"]:
                self._pending.append(event)
            case "apart" | "reduced":
                self._apart.add(event)
            case "trained_on":
                self._trained.add(event["passed"])
                for held in self._held.pop(event["passed"], []):
                    yield from self._gather(held)
            case "fact" if event.get("passed", "") not in {"", *self._trained}:
                self._held.setdefault(event["passed"], []).append(event)
            case "digest" | "changed" | "fact":
                yield from self._gather(event)

    def finish(self) -> Iterator[Finding]:
        """Yield what the steps show that some rank has not written about, and processes without an optimizer's step."""
        if not self._stepping:
            for event in sorted(self._pending, key=lambda event: event["number"]):
                yield from self._gather(event)
        self._pending = []
        groups = sorted(self._groups.values(), key=_place_in_program)
        self._groups = {}
        for group in groups:
            yield from self._compare(group)
        yield from self._apart.finish()

    def _gather(self, event: Event) -> Iterator[Finding]:
        module, what = json.dumps(event["key"]), event.get("check" if event["event"] == "fact" else "what")
        key = json.dumps([module, what, event["number"]])
        group = self._groups.setdefault(key, {})
        group.setdefault(event["worker"] if "worker" in event else event["rank"], event)
        _, ranks, *_ = event["key"]
        if len(group) == len(ranks):
            yield from self._compare(self._groups.pop(key))

    def _compare(self, group: Mapping[int, Event]) -> Iterator[Finding]:
        """Yield the finding of the lowest ranks that differ, once for each module."""
        events = [group[rank] for rank in sorted(group)]
        if events[0]["event"] == "fact":
            yield from self._compare_facts(events)
        elif events[0]["event"] == "changed":
            yield from self._compare_changed(events)
        else:
            yield from self._compare_digests(events)

    def _compare_digests(self, events: Sequence[Event]) -> Iterator[Finding]:
        first, *others = events
        module, what = json.dumps(first["key"]), first["what"]
        # Parameters drift apart from the step on at which gradients differed.
        if {(module, "gradients"), (module, what)} & self._found:
            return
        for other in others:
            differing = {name: numbers for name, *numbers in _differing(first, other)}
            check = first["changed"] if _has_changed(first, other) else first["check"]
            if differing and check is not None:  # None if it may not speak
                self._found.add((module, what))
                yield _finding({**first, "check": check}, other, differing)
                return

    def _compare_changed(self, events: Sequence[Event]) -> Iterator[Finding]:
        first, *others = events
        reported = (json.dumps(first["key"]), "changed")
        for other in others if reported not in self._found else ():
            shared = _equal_before(first, other)
            apart = {name: numbers for name, *numbers in _differing(first, other) if name in shared}
            if apart:
                self._found.add(reported)
                yield _changed_apart(first, other, len(shared), apart)
                return

    def _compare_facts(self, events: Sequence[Event]) -> Iterator[Finding]:
        wants_same = events[0].get("wanted") != "different"
        reported = (json.dumps(events[0]["key"][:3]), events[0]["check"])
        for first, other in itertools.combinations(events, 2):
            if (first["value"] == other["value"]) != wants_same and reported not in self._found:
                self._found.add(reported)
                values = {_who(event): event["value"] for event in (first, other)}
                yield from_event(first, numbers={first["what"]: values}, step=first["number"] or None)

    def _compare_waiting(self, event: Event) -> Iterator[Finding]:
        by_rank = self._waiting.setdefault(json.dumps(event["key"]), {})
        by_rank[event["rank"]] = event
        if len(by_rank) < event["world"] or len({waiting["call"] for waiting in by_rank.values()}) == 1:
            return
        events = [by_rank[rank] for rank in sorted(by_rank)]
        text = "the ranks wait for one another: " + ", ".join(
            f"rank {waiting['rank']} in {waiting['call']} ({waiting['place']})" for waiting in events[:_MOST_NAMES]
        )
        # The longest name says most.
        yield from_event(max(events, key=lambda waiting: len(waiting["check"])), text=text)


def _who(event: Event) -> str:
    return f"worker {event['worker']}" if "worker" in event else f"rank {event['rank']}"


def _place_in_program(group: Mapping[int, Event]) -> tuple[int, str, str]:
    """Return what orders a group: its step, then its module; gradients come before parameters."""
    event = group[min(group)]
    return event["number"], json.dumps(event["key"]), event["what"]


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


def _equal_before(one: Event, other: Event) -> set[str]:
    """Return the names of the gradients that both ranks had alike, and that are not zero, before they were changed."""
    theirs = {name: pair for name, *pair in zip(other["names"], *other["before"], strict=True)}
    mine = {name: pair for name, *pair in zip(one["names"], *one["before"], strict=True)}
    return {
        name
        for name, (norm, total) in mine.items()
        if norm > 0 and all(map(math.isfinite, (norm, total)))
        if max(abs(norm - theirs.get(name, (0, 0))[0]), abs(total - theirs.get(name, (0, 0))[1])) <= _SAME * norm
    }


def _changed_apart(one: Event, other: Event, shared: int, apart: Mapping[str, Any]) -> Finding:
    ranks = (one["rank"], other["rank"])
    text = (
        f"gradients that ranks {ranks[0]} and {ranks[1]} had alike after the backward differ at the step:"
        f" {len(apart)} of {shared}"
    )
    return from_event(one, text=text, names=tuple(apart)[:_MOST_NAMES], numbers=_numbers(ranks, apart))


def _has_changed(one: Event, other: Event) -> bool:
    """Return whether two ranks had the same gradients after the backward."""
    names = [event.get("reduced", {}).get("names", []) for event in (one, other)]
    return bool(names[0]) and names[0] == names[1] and not list(_differing(one["reduced"], other["reduced"]))


def _finding(one: Event, other: Event, differing: Mapping[str, Any]) -> Finding:
    ranks = (one["rank"], other["rank"])
    when = " after this backward" if one["what"] == "gradients" else ""
    if one["check"] == one.get("changed"):
        when = " at the step, and agreed after this backward"
    text = (
        f"{one['what']} differ between ranks {ranks[0]} and {ranks[1]}{when}: {len(differing)} of {one['total']}"
        " parameters of a DistributedDataParallel"
    )
    return from_event(one, text=text, names=tuple(differing)[:_MOST_NAMES], numbers=_numbers(ranks, differing))


def _numbers(ranks: tuple[int, int], differing: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{measure} of {name}": {f"rank {rank}": value for rank, value in zip(ranks, values, strict=True)}
        for name, (measure, values) in list(differing.items())[:_MOST_NAMES]
    }
