"""A process group across all dumps: which ranks called and completed each of its collectives.

A group's collectives are numbered from 1 (with NCCL) in each of its ranks, and a rank calls them in that order. So a
rank with a later collective has called the earlier ones, even if its ring buffer no longer has them or its dump has
only unfinished calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from repros.diagnose.match.hang.calls import DEFAULT, CollectiveCall, Dump, Progress, group_text


@dataclass(frozen=True)
class Group:
    """One process group."""

    name: str
    description: str
    """Its name in the program or the library; may be empty."""
    ranks: tuple[int, ...]
    """Global ranks, in the order of their ranks within the group."""
    is_stated: bool
    """Whether a dump states the ranks; otherwise they are those with a call in the group."""
    dumps: Mapping[int, Dump]
    """By rank."""

    @cached_property
    def calls(self) -> dict[int, tuple[CollectiveCall, ...]]:
        """By rank."""
        return {rank: dump.by_group.get(self.name, ()) for rank, dump in self.dumps.items()}

    @cached_property
    def collectives(self) -> dict[int, dict[int, tuple[CollectiveCall, ...]]]:
        """By rank and number; the calls of one coalesced group have the same number."""
        collectives: dict[int, dict[int, tuple[CollectiveCall, ...]]] = {}
        for rank, calls in self.calls.items():
            numbered = collectives.setdefault(rank, {})
            for call in calls:
                if call.peers is None:
                    numbered[call.number] = (*numbered.get(call.number, ()), call)
        return collectives

    @cached_property
    def open_numbers(self) -> list[int]:
        """The numbers of the collectives that some rank has not completed."""
        return sorted(
            {
                number
                for numbered in self.collectives.values()
                for number, calls in numbered.items()
                if not all(call.is_finished for call in calls)
            }
        )

    @cached_property
    def absent(self) -> tuple[int, ...]:
        """The ranks without a dump."""
        return tuple(rank for rank in self.ranks if rank not in self.dumps)

    @cached_property
    def last(self) -> dict[int, int | None]:
        """The number of each rank's last collective; None if its dump leaves it open."""
        return {rank: self._last_of(rank) for rank in self.dumps}

    def _last_of(self, rank: int) -> int | None:
        if numbered := self.collectives[rank]:
            return max(numbered)
        if progress := self._progress_of(rank):
            return progress.enqueued
        return 0 if self.dumps[rank].is_complete else None

    def has_made(self, rank: int, number: int) -> bool | None:
        """Whether a rank has called a collective; None if its dump leaves it open."""
        last = self.last[rank]
        return None if last is None else last >= number

    def has_finished(self, rank: int, number: int) -> bool:
        """Whether a rank has completed a collective.

        Of one that was called and is no longer in the dump, `pg_status` tells; without it, it counts as completed.
        """
        if calls := self.collectives[rank].get(number):
            return all(call.is_finished for call in calls)
        if self.has_made(rank, number) is not True:
            return False
        progress = self._progress_of(rank)
        return progress is None or progress.completed < 0 or number <= progress.completed

    def lost(self, rank: int) -> range:
        """Return the numbers of a rank's unfinished collectives that are no longer in its dump."""
        progress, numbered = self._progress_of(rank), self.collectives[rank]
        if progress is None or progress.completed < 0 or not numbered:
            return range(0)
        return range(progress.completed + 1, min(numbered))

    def _progress_of(self, rank: int) -> Progress | None:
        """Return `pg_status` of a group without sends, which counts both kinds in one field."""
        return None if self._has_p2p else self.dumps[rank].progress_in(self.name)

    @cached_property
    def _has_p2p(self) -> bool:
        return any(call.peers for calls in self.calls.values() for call in calls)

    @property
    def text(self) -> str:
        """Its name in a sentence."""
        return group_text(self.name, self.description)


def find_groups(dumps: Sequence[Dump]) -> tuple[Group, ...]:
    """Return the groups with a call, in the order of their numbers or names."""
    by_rank = {dump.rank: dump for dump in dumps}
    groups: dict[tuple[str, tuple[int, ...]], Group] = {}
    for dump in dumps:
        for name in dump.by_group:
            description = dump.by_group[name][0].description
            stated = dump.groups.get(name)
            ranks = stated.ranks if stated else _guess_ranks(name, description, dumps)
            if (name, ranks) in groups:
                continue
            own_dumps = {rank: by_rank[rank] for rank in ranks if rank in by_rank}
            description = (stated.description if stated else "") or description
            groups[name, ranks] = Group(name, description, ranks, stated is not None, own_dumps)
    return tuple(sorted(groups.values(), key=lambda group: (len(group.name), group.name, group.ranks)))


def _guess_ranks(name: str, description: str, dumps: Iterable[Dump]) -> tuple[int, ...]:
    """Return the ranks of a group that is in no `pg_config`, such as any of Gloo's.

    For the default group: the ranks of all dumps and of all groups in them. For another: the ranks with a call in it.
    """
    if description == DEFAULT:
        named = {rank for dump in dumps for group in dump.groups.values() for rank in group.ranks}
        return tuple(sorted(named | {dump.rank for dump in dumps}))
    return tuple(sorted(dump.rank for dump in dumps if name in dump.by_group))
