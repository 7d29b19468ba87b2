"""A training of many ranks in several groups, and its dumps after one rank has left."""

from __future__ import annotations

from typing import Any

from tests.diagnose.match.hang.made import content, entry


class Program:
    """A training of N ranks that reduce within shards of four, across the shards, and among all."""

    def __init__(self, ranks: int, steps: int) -> None:
        shards = [[*range(first, first + 4)] for first in range(0, ranks, 4)]
        across = [[*range(first, ranks, 4)] for first in range(4)]
        self.groups = {"0": [*range(ranks)]} | {f"{at + 1}": group for at, group in enumerate(shards + across)}
        self.calls = {rank: ["shard", "shard", "across", "all"] * steps for rank in range(ranks)}
        self.names = {rank: (f"{rank // 4 + 1}", f"{len(shards) + rank % 4 + 1}") for rank in range(ranks)}

    def group(self, rank: int, at: int) -> str:
        shard, across = self.names[rank]
        return {"shard": shard, "across": across, "all": "0"}[self.calls[rank][at]]

    def hang(self, culprit: int, stops: int) -> dict[int, Any]:
        """Return each rank's dump after one has left before a call: every other waits in the first it cannot end."""
        made = dict.fromkeys(self.calls, 0)
        left = {rank: stops if rank == culprit else len(calls) for rank, calls in self.calls.items()}
        ended = True
        while ended:
            ended = False
            for rank in self.calls:
                while made[rank] < left[rank]:
                    others = self.groups[self.group(rank, made[rank])]
                    if any(made[other] < made[rank] or left[other] <= made[rank] for other in others):
                        break
                    made[rank] += 1
                    ended = True
        return {rank: self._dump(rank, made[rank], waits=made[rank] < left[rank]) for rank in self.calls}

    def _dump(self, rank: int, made: int, *, waits: bool) -> Any:
        numbers: dict[str, int] = {}
        entries = []
        for at in range(made + waits):
            name = self.group(rank, at)
            numbers[name] = numbers.get(name, 0) + 1
            state = "completed" if at < made else "scheduled"
            ids: dict[str, Any] = {"process_group": (name, "default_pg" if name == "0" else ""), "pg_id": int(name)}
            entries.append(entry(numbers[name], state=state, **ids))
        return content(entries, {name: ranks for name, ranks in self.groups.items() if rank in ranks})
