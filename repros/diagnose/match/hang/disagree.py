"""Where the ranks of one group disagree: the first collective of each kind of disagreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from repros.diagnose.match.hang.calls import Call
from repros.diagnose.match.hang.groups import Group


class Kind(StrEnum):
    """How ranks disagree about one collective."""

    MISSING = "missing"
    """Some wait in it, and others never called it."""
    OTHER_CALL = "other call"
    """The ranks called different operations under one number, or one with different sizes or types."""
    UNFINISHED = "unfinished"
    """Some have seen its end, and others not: their device or their network stands still."""
    AHEAD = "ahead"
    """Some have seen its end, and others not, which its kind allows: the source of a broadcast need not wait."""
    ALL_WAIT = "all wait"
    """All ranks whose dumps are there called it alike, and none has seen its end."""


@dataclass(frozen=True)
class Disagreement:
    """One collective of one group, in which ranks wait."""

    kind: Kind
    group: str
    """Name of the group."""
    group_text: str
    """`group 72 (EXPERT_MODEL_PARALLEL_GROUP)`, `the default group`."""
    ranks: tuple[int, ...]
    """The ranks of the group, as far as they are known."""
    number: int
    """Of the collective in the group."""
    calls: tuple[tuple[str, tuple[int, ...]], ...]
    """What was called, and by which ranks; several if the ranks called different things."""
    waiting: tuple[int, ...]
    """Ranks that called it and have not seen its end."""
    missing: tuple[int, ...] = ()
    """Ranks that never called it."""
    finished: tuple[int, ...] = ()
    """Ranks that have seen its end."""
    unknown: tuple[int, ...] = ()
    """Ranks whose evidence cannot tell whether they called it."""
    absent: tuple[int, ...] = ()
    """Ranks of which there is no evidence at all."""
    since_ns: int = 0
    """When the first rank that waits made the call, by that rank's clock; 0 if the evidence does not say."""

    @property
    def culprits(self) -> tuple[int, ...]:
        """The ranks that the others wait for."""
        return {Kind.MISSING: self.missing, Kind.UNFINISHED: self.waiting}.get(self.kind, ())


_UNEVEN = frozenset(("all_to_all", "all_to_all_single", "all_to_all_v_single", "all_gather_v", "reduce_scatter_v"))
"""Operations whose tensors may have another size on each rank."""
_ONE_SIDED = frozenset(("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter", "coalesced"))
"""Operations that one rank may end while others still run."""


def find_disagreements(group: Group) -> tuple[Disagreement, ...]:
    """Return the first collective of each kind of disagreement, in the order of their numbers.

    `ahead` and `all wait` are returned only if there is nothing else.
    """
    found: dict[Kind, Disagreement] = {}
    for number in group.open_numbers:
        for disagreement in _judge(group, number):
            found.setdefault(disagreement.kind, disagreement)
        if Kind.OTHER_CALL in found:
            break  # what follows in the ranks is no longer the same collective
    for weaker in (Kind.AHEAD, Kind.ALL_WAIT):
        if len(found) > 1:
            found.pop(weaker, None)
    return tuple(sorted(found.values(), key=lambda disagreement: disagreement.number))


def _judge(group: Group, number: int) -> Iterator[Disagreement]:
    """Yield what is to be said about the collective of one number."""
    made = {rank: group.has_made(rank, number) for rank in group.dumps}
    called = {rank: found for rank in made if (found := group.collectives[rank].get(number))}
    waiting = tuple(rank for rank in called if not group.has_finished(rank, number))
    missing = tuple(rank for rank, answer in made.items() if answer is False)
    unknown = tuple(rank for rank, answer in made.items() if answer is None)
    finished = tuple(rank for rank in made if group.has_finished(rank, number))
    calls = _variants(called)

    def disagreement(kind: Kind) -> Disagreement:
        since = min(call.created_ns for rank in waiting for call in called[rank])
        return Disagreement(
            *(kind, group.name, group.text, group.ranks, number, calls),
            *(waiting, missing, finished, unknown, group.absent, since),
        )

    if len(calls) > 1:
        yield disagreement(Kind.OTHER_CALL)
    if missing:
        yield disagreement(Kind.MISSING)
    if finished:
        is_one_sided = any(call.operation in _ONE_SIDED for rank in waiting for call in called[rank])
        yield disagreement(Kind.AHEAD if is_one_sided else Kind.UNFINISHED)
    if not missing and not finished and len(calls) == 1:
        yield disagreement(Kind.ALL_WAIT)


def _variants(called: dict[int, tuple[Call, ...]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return what was called and by whom, the most usual first; one if the ranks' calls go together."""
    groups: dict[object, list[int]] = {}
    for rank, calls in called.items():
        groups.setdefault(tuple(map(_meaning, calls)), []).append(rank)
    ordered = sorted(groups.values(), key=lambda ranks: (-len(ranks), ranks))
    return tuple((" and ".join(call.text for call in called[ranks[0]]), tuple(ranks)) for ranks in ordered)


def _meaning(call: Call) -> tuple[object, ...]:
    """Return what must be the same on all ranks for a collective to end.

    NCCL and Gloo see numbers of elements, not shapes. A gather's output and a scatter's input are on one rank alone, a
    broadcast's source may state another tensor than it fills.
    """
    if call.operation in _UNEVEN:
        return (call.operation, call.types)
    shapes = call.outputs if call.operation == "scatter" else call.inputs
    return (call.operation, call.types if shapes else (), tuple(map(prod, shapes)))
