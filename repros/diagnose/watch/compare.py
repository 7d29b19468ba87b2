"""The comparison of what the ranks of a program have written about the same step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from repros.diagnose.watch.divergence import TOLERANCE, Divergence
from repros.diagnose.watch.events import Event
from repros.diagnose.watch.finding import Finding, from_event
from repros.diagnose.watch.reduced_by_hand import ReducedByHand

_SAME = 1e-6
"""Relative difference up to which two ranks have the same gradient: what they reduced together has the same bits."""

_MOST_NAMES = 5


class Comparison:
    """The events of ranks about the same step, compared once all of the ranks have written theirs.

    The order in which processes write does not matter: an event waits until its group is complete. An example of two
    ranks, `D1` a digest of step 1 (`key`, `what` and `number` in common), `F` a fact of a loader's worker:

        event                  state afterwards                                  finding
        rank 0: D1, pending    `_pending` has D1 of rank 0
        rank 1: stepping       `_stepping` has rank 1's process: at the end, `_pending` is dropped
        rank 0: D1             `_groups` has {0: D1}
        rank 1: D1             the group is complete: compared and removed       gradients_differ
        worker 0: F, pass p    `_held` has F under p: nothing was trained on p
        rank 0: trained_on p   `_trained` has p, F moves to `_groups`
        worker 1: F, pass p    the group is complete: compared and removed       draws_repeated_by_workers
        rank 0: waiting in c   `_waiting` has {0: c}
        rank 0: moved          `_waiting` has {}: it was no deadlock
        end                    incomplete groups are compared by the ranks that have written

    A digest is `pending` while its program has made no optimizer step: it counts only in programs without a step.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[int, Event]] = {}
        """The digests and facts of one step that are not compared yet, by rank or worker."""
        self._pending: list[Event] = []
        self._stepping: set[int] = set()
        """The processes that have made an optimizer step, by pid."""
        self._waiting: dict[str, dict[int, Event]] = {}
        self._reported: set[tuple[str, str]] = set()
        self._divergence = Divergence()
        self._reduced_by_hand = ReducedByHand()
        self._held: dict[str, list[Event]] = {}
        """The facts of the workers of a pass that nothing was trained on so far, by pass."""
        self._trained: set[str] = set()
        """The passes that something was trained on."""

    def add(self, event: Event) -> Iterator[Finding]:
        """Take an event and yield the findings that it completes."""
        match event["event"]:
            case "stepping":
                self._stepping.add(event["pid"])
            case "waiting":
                yield from self._compare_waiting(event)
            case "moved":
                self._waiting.get(json.dumps(event["key"]), {}).pop(event["rank"], None)
            case "digest" if event["pending"]:
                self._pending.append(event)
            case "eighth_step" | "communicated" | "reduced_step":
                (self._reduced_by_hand if event["event"] == "reduced_step" else self._divergence).add(event)
            case "trained_on":
                self._trained.add(event["passed"])
                for held in self._held.pop(event["passed"], []):
                    yield from self._gather(held)
            case "fact" if event.get("passed", "") not in {"", *self._trained}:
                self._held.setdefault(event["passed"], []).append(event)
            case "digest" | "changed" | "fact":
                yield from self._gather(event)

    def finish(self) -> Iterator[Finding]:
        """Yield the findings of incomplete groups, and of programs without an optimizer's step."""
        if not self._stepping:
            for event in sorted(self._pending, key=lambda event: event["number"]):
                yield from self._gather(event)
        self._pending = []
        groups = sorted(self._groups.values(), key=_place_in_program)
        self._groups = {}
        for group in groups:
            yield from self._compare(group)
        yield from self._divergence.finish()
        yield from self._reduced_by_hand.finish()

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
        # Parameters diverge from the step on at which gradients differed.
        if {(module, "gradients"), (module, what)} & self._reported:
            return
        for other in others:
            differing = {name: numbers for name, *numbers in _differing(first, other)}
            check = first["changed"] if _has_changed(first, other) else first["check"]
            if differing and check is not None:  # None if it is disabled
                self._reported.add((module, what))
                yield _finding({**first, "check": check}, other, differing)
                return

    def _compare_changed(self, events: Sequence[Event]) -> Iterator[Finding]:
        first, *others = events
        reported = (json.dumps(first["key"]), "changed")
        for other in others if reported not in self._reported else ():
            shared = _equal_before(first, other)
            differing = {name: numbers for name, *numbers in _differing(first, other) if name in shared}
            if differing:
                self._reported.add(reported)
                yield _changed_differently(first, other, len(shared), differing)
                return

    def _compare_facts(self, events: Sequence[Event]) -> Iterator[Finding]:
        wants_same = events[0].get("wanted") != "different"
        reported = (json.dumps(events[0]["key"][:3]), events[0]["check"])
        for first, other in itertools.combinations(events, 2):
            if (first["value"] == other["value"]) != wants_same and reported not in self._reported:
                self._reported.add(reported)
                values = {_writer(event): event["value"] for event in (first, other)}
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
        # The longest name is the most specific check.
        yield from_event(max(events, key=lambda waiting: len(waiting["check"])), text=text)


def _writer(event: Event) -> str:
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
    """Return the names of the gradients that agreed on both ranks, and are not zero, before they were changed."""
    theirs = {name: pair for name, *pair in zip(other["names"], *other["before"], strict=True)}
    mine = {name: pair for name, *pair in zip(one["names"], *one["before"], strict=True)}
    return {
        name
        for name, (norm, total) in mine.items()
        if norm > 0 and all(map(math.isfinite, (norm, total)))
        if max(abs(norm - theirs.get(name, (0, 0))[0]), abs(total - theirs.get(name, (0, 0))[1])) <= _SAME * norm
    }


def _changed_differently(one: Event, other: Event, shared: int, differing: Mapping[str, Any]) -> Finding:
    ranks = (one["rank"], other["rank"])
    text = (
        f"gradients that agreed on ranks {ranks[0]} and {ranks[1]} after the backward differ at the step:"
        f" {len(differing)} of {shared}"
    )
    return from_event(one, text=text, names=tuple(differing)[:_MOST_NAMES], numbers=_numbers(ranks, differing))


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
