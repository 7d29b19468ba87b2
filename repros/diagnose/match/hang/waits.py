"""Who waits for whom, across all groups, and which ranks are the root of the hang.

A rank waits for the ranks that never called the collective in which it is, and for the peer of a send or receive
without a counterpart. Those may wait for others in another group: a pipeline's first stage waits for the second, which
waits for a rank of a third group. The roots are the ranks at the end of these chains, which wait for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from repros.diagnose.match.hang.calls import CollectiveCall
from repros.diagnose.match.hang.disagree import DisagreementKind, RankDisagreement
from repros.diagnose.match.hang.groups import Group

Edges = Mapping[int, frozenset[int]]
"""The ranks that a rank waits for."""


@dataclass(frozen=True)
class Unanswered:
    """A send or receive whose peer has not called its counterpart."""

    group: str
    group_text: str
    rank: int
    peer: int
    """The rank that it waits for."""
    call: CollectiveCall


def find_unanswered(group: Group) -> tuple[Unanswered, ...]:
    """Return the unfinished sends and receives without an unfinished counterpart, for peers with a dump."""
    unfinished: dict[tuple[int, int, str], list[CollectiveCall]] = {}
    for calls in group.calls.values():
        for call in calls:
            if call.peers and not call.is_finished and (pair := _global_peers(group, call)):
                unfinished.setdefault((*pair, call.operation), []).append(call)
    unanswered = []
    for (source, target, operation), waiting in unfinished.items():
        other = "recv" if operation == "send" else "send"
        rank, peer = (source, target) if operation == "send" else (target, source)
        answers = len(unfinished.get((source, target, other), ()))
        if peer in group.dumps and len(waiting) > answers:
            unanswered.append(Unanswered(group.name, group.text, rank, peer, waiting[answers]))
    return tuple(unanswered)


def _global_peers(group: Group, call: CollectiveCall) -> tuple[int, int] | None:
    source, target = call.peers or (None, 0)
    if source is None or max(source, target) >= len(group.ranks):
        return None
    return group.ranks[source], group.ranks[target]


def find_edges(groups: Iterable[Group], unanswered: Iterable[Unanswered]) -> Edges:
    """Return the ranks that each rank waits for, in all of its unfinished calls."""
    edges: dict[int, set[int]] = {}
    for group in groups:
        for number in group.open_numbers:
            missing = {rank for rank in group.dumps if group.has_made(rank, number) is False}
            for rank in group.dumps if missing else ():
                calls = group.collectives[rank].get(number, ())
                if any(not call.is_finished for call in calls):
                    edges.setdefault(rank, set()).update(missing)
    for wait in unanswered:
        edges.setdefault(wait.rank, set()).add(wait.peer)
    return {rank: frozenset(others) for rank, others in edges.items()}


def find_roots(edges: Edges, disagreements: Iterable[RankDisagreement]) -> tuple[int, ...]:
    """Return the ranks at the root of the hang.

    These are the ranks that others wait for and that wait for nobody, and those that have not completed a collective
    that others have. If ranks called different collectives, there is no such rank.
    """
    awaited = set[int]().union(*edges.values())
    stalled = {
        rank
        for disagreement in disagreements
        if disagreement.kind is DisagreementKind.UNFINISHED
        for rank in disagreement.waiting
    }
    return tuple(sorted((awaited - edges.keys()) | stalled))


def find_circle(edges: Edges) -> tuple[int, ...]:
    """Return ranks that wait for each other in a circle, the lowest first; empty if there is no circle."""
    for start in sorted(edges):
        path = [start]
        visited = {start}
        while following := sorted(edges.get(path[-1], ())):
            step = following[0]
            if step in visited:
                circle = path[path.index(step) :]
                least = circle.index(min(circle))
                return (*circle[least:], *circle[:least])
            path.append(step)
            visited.add(step)
    return ()
