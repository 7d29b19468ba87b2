"""From the exceptions that ended a program's processes to documented failures, without a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from repros.diagnose.match import Candidate, ChainLink, LogFailure, SignatureIndex
from repros.diagnose.match.candidates import find_candidates
from repros.diagnose.watch.events import Event
from repros.engine.causes import is_consequence
from repros.model import Raised, Repro

_SIGNALLED = {"KeyboardInterrupt", "SignalException"}
"""Exceptions that a signal raises in the program and in torchrun's agent: no failures of their own."""


def failures_of(events: Iterable[Event]) -> tuple[LogFailure, ...]:
    """Return the exception chains of the processes that raised, each chain once with all ranks that raised it."""
    by_chain: dict[tuple[tuple[str, str], ...], tuple[list[ChainLink], list[str]]] = {}
    for event in events:
        links = [ChainLink(_raised(link), 0, has_traceback=True) for link in event["chain"]]
        if not links:
            continue
        key = tuple((link.raised.type, link.raised.message) for link in links)
        _, labels = by_chain.setdefault(key, (links, []))
        if event.get("rank") is not None:
            labels.append(f"rank {event['rank']}")
    return tuple(LogFailure(tuple(links), tuple(dict.fromkeys(labels))) for links, labels in by_chain.values())


def find_crashes(
    events: Sequence[Event], catalogue: Iterable[Repro]
) -> tuple[tuple[Candidate, ...], tuple[LogFailure, ...]]:
    """Return the repros that the exceptions may be, and the failures that are not another process's consequence."""
    failures = failures_of(events)
    versions = {name: (version,) for event in events for name, version in event.get("versions", {}).items()}
    candidates, _ = find_candidates(failures, SignatureIndex(catalogue), versions)
    causes = [failure for failure in failures if not all(_is_consequence(link.raised) for link in failure.links)]
    return candidates, tuple(causes)


def _is_consequence(raised: Raised) -> bool:
    return is_consequence(raised) or raised.name.rpartition(".")[2] in _SIGNALLED


def _raised(link: Event) -> Raised:
    return Raised(link["type"], tuple(link["bases"]), link["message"], tuple(link["frames"]), link["via"])
