"""A process group over all dumps: which rank made its collective of which number, and which rank saw it end.

A group's collectives are numbered from 1 (with NCCL) in each of its ranks, and a rank makes them in that order. So a
rank that has a later one has made the earlier ones, even if its ring buffer no longer has them or its dump has
unfinished calls alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from repros.diagnose.match.hang.calls import DEFAULT, Call, Dump, group_text


@dataclass(frozen=True)
class Group:
    """One process group."""

    name: str
    description: str
    """What the program or the library calls it; may be empty."""
    ranks: tuple[int, ...]
    """Global ranks, in the order of their ranks within the group."""
    is_stated: bool
    """Whether a dump states the ranks, or they are those that have a call in it."""
    dumps: Mapping[int, Dump]
    """Those of its ranks, by rank."""

    @cached_property
    def calls(self) -> dict[int, tuple[Call, ...]]:
        """Each rank's calls."""
        return {rank: dump.by_group.get(self.name, ()) for rank, dump in self.dumps.items()}

    @cached_property
    def collectives(self) -> dict[int, dict[int, tuple[Call, ...]]]:
        """Each rank's collectives by their number; those of one coalesced group share it."""
        found: dict[int, dict[int, tuple[Call, ...]]] = {}
        for rank, calls in self.calls.items():
            numbered = found.setdefault(rank, {})
            for call in calls:
                if call.peers is None:
                    numbered[call.number] = (*numbered.get(call.number, ()), call)
        return found

    @cached_property
    def open_numbers(self) -> list[int]:
        """The numbers of the collectives whose end some rank has not seen."""
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
        """The ranks that have no dump."""
        return tuple(rank for rank in self.ranks if rank not in self.dumps)

    @cached_property
    def last(self) -> dict[int, int | None]:
        """The number of the last collective that each rank has made; None if its dump cannot tell."""
        return {rank: self._last_of(rank) for rank in self.dumps}

    def _last_of(self, rank: int) -> int | None:
        if numbered := self.collectives[rank]:
            return max(numbered)
        dump = self.dumps[rank]
        has_p2p = any(call.peers for calls in self.calls.values() for call in calls)
        if not has_p2p and (progress := dump.progress_in(self.name)):  # `pg_status` counts both kinds in one field
            return progress.enqueued
        return 0 if dump.is_whole else None

    def has_made(self, rank: int, number: int) -> bool | None:
        """Whether a rank has made a collective; None if its dump cannot tell."""
        last = self.last[rank]
        return None if last is None else last >= number

    def has_finished(self, rank: int, number: int) -> bool:
        """Whether a rank has seen a collective end; what its dump no longer has, but it has made, has ended."""
        calls = self.collectives[rank].get(number)
        return all(call.is_finished for call in calls) if calls else self.has_made(rank, number) is True

    @property
    def text(self) -> str:
        """What it is called in a sentence."""
        return group_text(self.name, self.description)


def find_groups(dumps: Sequence[Dump]) -> tuple[Group, ...]:
    """Return the groups in which some rank has made a call, in the order of their numbers or names."""
    everyone = {dump.rank: dump for dump in dumps}
    found: dict[tuple[str, tuple[int, ...]], Group] = {}
    for dump in dumps:
        for name in dump.by_group:
            description = dump.by_group[name][0].description
            stated = dump.groups.get(name)
            ranks = stated.ranks if stated else _guess_ranks(name, description, dumps)
            if (name, ranks) in found:
                continue
            members = {rank: everyone[rank] for rank in ranks if rank in everyone}
            description = (stated.description if stated else "") or description
            found[name, ranks] = Group(name, description, ranks, stated is not None, members)
    return tuple(sorted(found.values(), key=lambda group: (len(group.name), group.name, group.ranks)))


def _guess_ranks(name: str, description: str, dumps: Iterable[Dump]) -> tuple[int, ...]:
    """Return the ranks of a group that no `pg_config` names: Gloo's has the name of no group.

    Those that have a call in it; for the default group those of every dump, and of every group that a dump states.
    """
    if description == DEFAULT:
        named = {rank for dump in dumps for group in dump.groups.values() for rank in group.ranks}
        return tuple(sorted(named | {dump.rank for dump in dumps}))
    return tuple(sorted(dump.rank for dump in dumps if name in dump.by_group))
