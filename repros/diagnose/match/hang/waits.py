"""Who waits for whom, across all groups, and which ranks are the root of the hang.

A rank waits for the ranks that never called the collective in which it is, for the peer of a send or receive without a
counterpart, and, if all ranks with a dump wait in one call, for those without. Those may wait for others in another
group: a pipeline's first stage waits for the second, which waits for a rank of a third group. The roots are the ranks
at the end of these chains, which wait for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """Return the unfinished sends and receives without an unfinished counterpart.

    Of a peer without a dump there is no counterpart: it may be what the rank waits for.
    """
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
        if len(waiting) > answers:
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
            missing = missing or _absent_from(group, number)
            for rank in group.dumps if missing else ():
                calls = group.collectives[rank].get(number, ())
                if any(not call.is_finished for call in calls):
                    edges.setdefault(rank, set()).update(missing)
    for wait in unanswered:
        edges.setdefault(wait.rank, set()).add(wait.peer)
    return {rank: frozenset(others) for rank, others in edges.items()}


def _absent_from(group: Group, number: int) -> set[int]:
    """Return the ranks without a dump, or without any call in theirs, if all others wait in the collective."""
    # A dump of unfinished calls alone may be empty since its rank has completed the collective.
    has_finished = number == 1 or any(dump.has_finished for dump in group.dumps.values())
    empty = {rank for rank in group.dumps if has_finished and is_unclear(group, rank)}
    others = group.dumps.keys() - empty
    waits = all(group.has_made(rank, number) and not group.has_finished(rank, number) for rank in others)
    return {*group.absent, *empty} if waits else set()


def is_unclear(group: Group, rank: int) -> bool:
    """Return whether a rank's dump has no call and leaves open whether it made any."""
    return group.last[rank] is None and not group.dumps[rank].calls


def find_explained(groups: Iterable[Group], roots: Iterable[int]) -> frozenset[int]:
    """Return the ranks without a dump that are in a group whose ranks wait for one of the roots, as they may do."""
    known = {*roots}
    return frozenset(
        rank
        for group in groups
        for number in group.open_numbers
        if any(group.has_made(root, number) is False for root in known & group.dumps.keys())
        for rank in group.absent
    )


def find_opposite(groups: Sequence[Group]) -> tuple[Group, Group, tuple[int, int]] | None:
    """Return two groups that two of their ranks called in opposite order, and these ranks, in the groups' order.

    A rank's device runs its calls in order: each of the two waits in a call that the other has behind its own.
    """
    firsts = {rank: _first_open(groups, rank) for group in groups for rank in group.dumps}
    waiting = [(rank, *first) for rank, first in sorted(firsts.items()) if first]
    for one, group, number in waiting:
        for other, other_group, other_number in waiting:
            is_opposite = _is_open(group, other, number) and _is_open(other_group, one, other_number)
            if group is not other_group and is_opposite:
                return group, other_group, (one, other)
    return None


def _first_open(groups: Sequence[Group], rank: int) -> tuple[Group, int] | None:
    """Return the first collective that a rank has not completed: its group and number."""
    unfinished = [
        (call.record, at, call.number)
        for at, group in enumerate(groups)
        for call in group.calls.get(rank, ())
        if call.peers is None and not call.is_finished
    ]
    if not unfinished:
        return None
    _, at, number = min(unfinished)
    return groups[at], number


def _is_open(group: Group, rank: int, number: int) -> bool:
    """Return whether a rank has called a collective and not completed it."""
    calls = group.collectives.get(rank, {}).get(number, ())
    return any(not call.is_finished for call in calls)


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
