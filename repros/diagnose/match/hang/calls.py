"""The values of a flight recorder dump: a rank's calls of collectives, and its process groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

_MOST_SHAPES = 3
"""Shapes shown of one call."""
DEFAULT = "default_pg"
"""PyTorch's description of the group of all ranks."""


def group_text(name: str, description: str) -> str:
    """Return `group 72 (EXPERT_MODEL_PARALLEL_GROUP)`, `group 72` or `the default group`."""
    if description == DEFAULT:
        return "the default group"
    if not name:
        return "a group that the log does not name"
    return f"group {name}" + (f" ({description})" if description else "")


class State(StrEnum):
    """The state of a call, as the rank's own threads know it."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    """Its kernel runs. Recorded only with `TORCH_NCCL_ENABLE_TIMING=1`; otherwise such a call is `scheduled`."""
    FINISHED = "finished"


class PythonFrame(NamedTuple):
    """One frame of the Python stack that made a call."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """Return `file:line function`."""
        return f"{self.file}:{self.line} {self.function}"

    @property
    def is_library(self) -> bool:
        """Whether the file belongs to an installed package, to Python or to no file."""
        path = self.file.replace("\\", "/")
        folders = ("/site-packages/", "/dist-packages/", "/lib/python3", "torch/distributed/", "torch/nn/parallel/")
        return path.startswith("<") or any(folder in path for folder in folders)


def user_frame(frames: Iterable[PythonFrame]) -> PythonFrame | None:
    """Return the innermost frame outside of libraries, or else outside of `torch.distributed`."""
    frames = tuple(frames)
    own = (frame for frame in frames if not frame.is_library)
    outside = (frame for frame in frames if "torch/distributed/" not in frame.file.replace("\\", "/"))
    return next(own, None) or next(outside, None)


class CollectiveCall(NamedTuple):
    """A rank's call of one collective, or of a send or receive; a tuple, since dumps of many ranks have thousands."""

    group: str
    """The name of its process group, `process_group[0]`."""
    description: str
    """The group's name in the program or the library, `process_group[1]`; may be empty."""
    group_id: int
    """The group's number in this process, `pg_id`; it may differ in other ranks."""
    record: int
    """The index of the call in this process, from 0: `record_id`."""
    number: int
    """The call's number in the group: `collective_seq_id`, or for a send or receive `p2p_seq_id`."""
    operation: str
    """`all_reduce`, `send`, ...: `profiling_name` without backend and peers."""
    backend: str
    peers: tuple[int | None, int] | None
    """Source and target of a send or receive, as ranks within the group; the source may be any rank (None)."""
    inputs: tuple[tuple[int, ...], ...]
    """Shapes."""
    outputs: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    """Data types of the inputs, or of the outputs if there are no inputs: `Float`, `BFloat16`, ..."""
    state: State
    created_ns: int
    """Time of the call, in nanoseconds since 1970 by the rank's own clock."""
    timeout_ms: int
    frames: tuple[PythonFrame, ...]
    """Innermost first; empty if the dump was written without stacks."""

    @property
    def is_finished(self) -> bool:
        """Whether the rank has completed it."""
        return self.state is State.FINISHED

    @property
    def location(self) -> PythonFrame | None:
        """The innermost frame outside of libraries, or else outside of `torch.distributed`."""
        return user_frame(self.frames)

    @property
    def text(self) -> str:
        """`all_reduce of 1024x16 Float`."""
        shapes = self.inputs or self.outputs
        size = " and ".join("x".join(map(str, shape)) or "a scalar" for shape in shapes[:_MOST_SHAPES])
        more = f" and {len(shapes) - _MOST_SHAPES} more" if len(shapes) > _MOST_SHAPES else ""
        types = " and ".join(dict.fromkeys(self.types))
        return " ".join(filter(None, (self.operation, f"of {size}{more}" if size else "", types)))


@dataclass(frozen=True)
class Progress:
    """The numbers of a group's last calls, `pg_status`; -1 for none."""

    enqueued: int
    completed: int


@dataclass(frozen=True)
class Membership:
    """A group as one rank's dump describes it, `pg_config`."""

    description: str
    ranks: tuple[int, ...]
    """Global ranks, in the order of their ranks within the group."""


@dataclass(frozen=True)
class Dump:
    """The dump of one rank's flight recorder."""

    rank: int
    file: str
    version: str
    """The version of the format: `2.10`."""
    calls: tuple[CollectiveCall, ...]
    """In the order of the calls."""
    groups: Mapping[str, Membership]
    progress: Mapping[int, Progress]
    """By the group's number in this process."""
    problem: str = ""
    """A sentence on why the file could not be read; its calls are unknown."""

    @cached_property
    def has_finished(self) -> bool:
        """Whether it has completed calls. A dump with `onlyActive` has none."""
        return any(call.is_finished for call in self.calls)

    @cached_property
    def overwritten(self) -> int:
        """The number of the rank's first calls that the ring buffer no longer has; 0 for a dump with `onlyActive`."""
        return self.calls[0].record if self.has_finished else 0

    @cached_property
    def is_complete(self) -> bool:
        """Whether it has every call of the rank."""
        return bool(self.calls) and self.calls[0].record == 0 and self.calls[-1].record == len(self.calls) - 1

    @cached_property
    def by_group(self) -> dict[str, tuple[CollectiveCall, ...]]:
        """The calls of each group."""
        groups: dict[str, list[CollectiveCall]] = {}
        for call in self.calls:
            groups.setdefault(call.group, []).append(call)
        return {name: tuple(calls) for name, calls in groups.items()}

    @cached_property
    def written_as(self) -> int | None:
        """Another rank that made the sends and receives of this dump; None if the rank of its file's name did."""
        for call in self.calls:
            members = self.groups[call.group].ranks if call.group in self.groups else ()
            source, target = call.peers or (None, None)
            own = source if call.operation == "send" else target
            if own is not None and own < len(members) and members[own] != self.rank:
                return members[own]
        return None

    @cached_property
    def newest_ns(self) -> int:
        """Time of its last call, in nanoseconds since 1970 by the rank's clock; 0 without calls."""
        return max((call.created_ns for call in self.calls), default=0)

    def progress_in(self, group: str) -> Progress | None:
        """Return the numbers of the rank's last calls in a group; None if unknown.

        `pg_status` has the groups' numbers and `pg_config` their names. Both increase in the order in which the rank
        first used its groups, so if there are equally many, they correspond in that order.
        """
        if calls := self.by_group.get(group):
            return self.progress.get(calls[0].group_id)
        names = sorted(map(int, filter(str.isdecimal, self.groups)))
        if len(names) != len(self.groups) or len(names) != len(self.progress):
            return None
        pairs = dict(zip(map(str, names), sorted(self.progress), strict=True))
        known = all(pairs.get(name) == calls[0].group_id for name, calls in self.by_group.items())
        return self.progress[pairs[group]] if known and group in pairs else None
