"""Find where the ranks of one group disagree: the first collective of each kind of disagreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from repros.diagnose.match.hang.calls import CollectiveCall, State
from repros.diagnose.match.hang.groups import Group


class DisagreementKind(StrEnum):
    """How ranks disagree about one collective."""

    MISSING = "missing"
    """Some ranks wait in it, and others never called it."""
    OTHER_CALL = "other call"
    """The ranks called different operations with the same number, or one operation with different sizes or types."""
    UNFINISHED = "unfinished"
    """Some ranks have completed it, and others have not: their device or their network is stuck."""
    AHEAD = "ahead"
    """Some ranks completed it before others, which its operation allows: the source of a broadcast need not wait."""
    ALL_WAIT = "all wait"
    """All ranks with a dump called it alike, and none has completed it."""


@dataclass(frozen=True)
class RankDisagreement:
    """One collective of one group, in which ranks wait."""

    kind: DisagreementKind
    group: str
    """Name of the group."""
    group_text: str
    """`group 72 (EXPERT_MODEL_PARALLEL_GROUP)`, `the default group`."""
    ranks: tuple[int, ...]
    """The known ranks of the group."""
    number: int
    """The number of the collective in the group."""
    calls: tuple[tuple[str, tuple[int, ...]], ...]
    """The calls and their ranks; several if the ranks called different collectives."""
    waiting: tuple[int, ...]
    """Ranks that called it and have not completed it."""
    missing: tuple[int, ...] = ()
    """Ranks that never called it."""
    finished: tuple[int, ...] = ()
    """Ranks that have completed it."""
    unknown: tuple[int, ...] = ()
    """Ranks whose evidence leaves open whether they called it."""
    absent: tuple[int, ...] = ()
    """Ranks without evidence."""
    not_started: tuple[int, ...] = ()
    """Waiting ranks whose device has not begun it, while that of others has: their earlier work does not end."""
    since_ns: int = 0
    """Time of the first waiting rank's call, in nanoseconds since 1970 by that rank's clock; 0 if unknown."""

    @property
    def culprits(self) -> tuple[int, ...]:
        """The ranks that the others wait for."""
        return {DisagreementKind.MISSING: self.missing, DisagreementKind.UNFINISHED: self.waiting}.get(self.kind, ())


_UNEVEN = frozenset(("all_to_all", "all_to_all_single", "all_to_all_v_single", "all_gather_v", "reduce_scatter_v"))
"""Operations whose tensors may have another size on each rank."""
_ONE_SIDED = frozenset(("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter", "coalesced"))
"""Operations that one rank may complete before others."""


def find_disagreements(group: Group) -> tuple[RankDisagreement, ...]:
    """Return the first collective of each kind of disagreement, in the order of their numbers.

    `ahead` and `all wait` are returned only if there is nothing else.
    """
    by_kind: dict[DisagreementKind, RankDisagreement] = {}
    for number in group.open_numbers:
        for disagreement in _judge(group, number):
            by_kind.setdefault(disagreement.kind, disagreement)
        if DisagreementKind.OTHER_CALL in by_kind:
            break  # from here on, one number is not the same collective on all ranks
    for weaker in (DisagreementKind.AHEAD, DisagreementKind.ALL_WAIT):
        if len(by_kind) > 1:
            by_kind.pop(weaker, None)
    return tuple(sorted(by_kind.values(), key=lambda disagreement: disagreement.number))


def find_mismatch(group: Group) -> RankDisagreement | None:
    """Return the first collective that all ranks completed although they called different ones."""
    for number in sorted(set[int]().union(*group.collectives.values())):
        called = {rank: calls for rank in group.dumps if (calls := group.collectives[rank].get(number))}
        variants = _variants(called)
        if len(variants) > 1 and all(call.is_finished for calls in called.values() for call in calls):
            texts = (DisagreementKind.OTHER_CALL, group.name, group.text, group.ranks, number, variants)
            return RankDisagreement(*texts, waiting=(), finished=tuple(called), absent=group.absent)
    return None


def _judge(group: Group, number: int) -> Iterator[RankDisagreement]:
    """Yield the disagreements about the collective with one number."""
    made = {rank: group.has_made(rank, number) for rank in group.dumps}
    called = {rank: calls for rank in made if (calls := group.collectives[rank].get(number))}
    waiting = tuple(rank for rank in called if not group.has_finished(rank, number))
    missing = tuple(rank for rank, answer in made.items() if answer is False)
    unknown = tuple(rank for rank, answer in made.items() if answer is None)
    finished = tuple(rank for rank in made if group.has_finished(rank, number))
    variants = _variants(called)

    def disagreement(kind: DisagreementKind) -> RankDisagreement:
        since = min(call.created_ns for rank in waiting for call in called[rank])
        begun = {rank for rank in waiting if any(call.state is State.STARTED for call in called[rank])}
        return RankDisagreement(
            *(kind, group.name, group.text, group.ranks, number, variants),
            *(waiting, missing, finished, unknown, group.absent),
            not_started=tuple(rank for rank in waiting if rank not in begun) if begun else (),
            since_ns=since,
        )

    if len(variants) > 1:
        yield disagreement(DisagreementKind.OTHER_CALL)
    if missing:
        yield disagreement(DisagreementKind.MISSING)
    if finished:
        is_one_sided = any(call.operation in _ONE_SIDED for rank in waiting for call in called[rank])
        yield disagreement(DisagreementKind.AHEAD if is_one_sided else DisagreementKind.UNFINISHED)
    if not missing and not finished and len(variants) == 1:
        yield disagreement(DisagreementKind.ALL_WAIT)


def _variants(called: dict[int, tuple[CollectiveCall, ...]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the calls and their ranks, the most frequent first; a single one if the ranks' calls agree."""
    groups: dict[object, list[int]] = {}
    for rank, calls in called.items():
        groups.setdefault(tuple(map(_meaning, calls)), []).append(rank)
    ordered = sorted(groups.values(), key=lambda ranks: (-len(ranks), ranks))
    return tuple((" and ".join(call.text for call in called[ranks[0]]), tuple(ranks)) for ranks in ordered)


def _meaning(call: CollectiveCall) -> tuple[object, ...]:
    """Return the properties that must be equal on all ranks for a collective to complete.

    NCCL and Gloo compare numbers of elements, not shapes. Only one rank has a gather's output and a scatter's input,
    and a broadcast's source may state another tensor than it fills.
    """
    if call.operation in _UNEVEN:
        return (call.operation, call.types)
    shapes = call.outputs if call.operation == "scatter" else call.inputs
    return (call.operation, call.types if shapes else (), tuple(map(prod, shapes)))
