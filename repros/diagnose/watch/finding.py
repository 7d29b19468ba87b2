"""The finding of a check in a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One finding, of a process or of the comparison of ranks."""

    check: str
    """The check that reports, such as `gradients_differ`."""
    text: str
    """The finding in a clause."""
    rank: int | None
    step: int | None
    """The optimizer's step, from 1; None where it belongs to no step."""
    names: tuple[str, ...] = ()
    """Parameters or other names, the first few."""
    place: str | None = None
    """`file:line function` in the user's own code."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The imported training libraries, each with its version."""
    wrappers: frozenset[str] = frozenset()
    """What drives the training: `fabric`, `trainer`, `accelerate`."""


def from_event(event: Mapping[str, Any], **replaced: Any) -> Finding:
    """Return the finding of an event, with some fields replaced.

    Args:
        event: an event `finding` or `digest`.
        replaced: fields that differ from those of the event.
    """
    values = {
        "check": event["check"],
        "text": event.get("text", ""),
        "rank": event.get("rank"),
        "step": event.get("step", event.get("number")),
        "names": tuple(event.get("names", ())),
        "place": event.get("place"),
        "numbers": event.get("numbers", {}),
        "versions": {name: (version,) for name, version in event.get("versions", {}).items()},
        "wrappers": frozenset(event.get("wrappers", ())),
    }
    return Finding(**(values | replaced))
