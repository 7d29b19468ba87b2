"""The values of a flight recorder's dump: a rank's calls of collectives, and the groups that it is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

_MOST_SHAPES = 3
"""Of one call that are shown."""
DEFAULT = "default_pg"
"""What PyTorch calls the group of all ranks."""


def group_text(name: str, description: str) -> str:
    """Return `group 72 (EXPERT_MODEL_PARALLEL_GROUP)`, `group 72` or `the default group`."""
    if description == DEFAULT:
        return "the default group"
    if not name:
        return "a group that the log does not name"
    return f"group {name}" + (f" ({description})" if description else "")


class State(StrEnum):
    """How far a call is, as far as the rank's own threads have seen."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    """Its kernel runs. Recorded only with `TORCH_NCCL_ENABLE_TIMING=1`; without, such a call is `scheduled`."""
    FINISHED = "finished"


@dataclass(frozen=True)
class Frame:
    """One frame of the Python stack that made a call."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """Return it as `repros match` writes the frames of a traceback."""
        return f"{self.file}:{self.line} {self.function}"

    @property
    def is_library(self) -> bool:
        """Whether the file belongs to an installed package, to Python or to no file."""
        path = self.file.replace("\\", "/")
        places = ("/site-packages/", "/dist-packages/", "/lib/python3", "torch/distributed/", "torch/nn/parallel/")
        return path.startswith("<") or any(place in path for place in places)


def user_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame outside of libraries; else the innermost that is not of `torch.distributed`."""
    kept = tuple(frames)
    own = (frame for frame in kept if not frame.is_library)
    outside = (frame for frame in kept if "torch/distributed/" not in frame.file.replace("\\", "/"))
    return next(own, None) or next(outside, None)


@dataclass(frozen=True)
class Call:
    """A rank's call of one collective, or of a send or receive."""

    group: str
    """The name of its process group, `process_group[0]`."""
    description: str
    """What the program or the library calls the group, `process_group[1]`; may be empty."""
    group_id: int
    """The number of the group in this process, `pg_id`; other ranks may have another one for it."""
    record: int
    """The how-manieth call of this process it is, from 0."""
    number: int
    """Its place in the group: `collective_seq_id`, or for a send or receive `p2p_seq_id`."""
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
    """When it was made, in nanoseconds since 1970 by the rank's own clock."""
    timeout_ms: int
    frames: tuple[Frame, ...]
    """The innermost first; empty if the dump was written without stacks."""

    @property
    def is_finished(self) -> bool:
        """Whether the rank has seen its end."""
        return self.state is State.FINISHED

    @property
    def place(self) -> Frame | None:
        """The innermost frame outside of libraries; else the innermost that is not of `torch.distributed`."""
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
    """The numbers of the last calls of a group, `pg_status`; -1 for none."""

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
    """What one rank's flight recorder has written."""

    rank: int
    file: str
    version: str
    """Of the format: `2.10`."""
    calls: tuple[Call, ...]
    """In the order in which they were made."""
    groups: Mapping[str, Membership]
    progress: Mapping[int, Progress]
    """By the group's number in this process."""

    @cached_property
    def holds_finished(self) -> bool:
        """Whether it has calls that ended. Written with `onlyActive`, a dump has none."""
        return any(call.is_finished for call in self.calls)

    @cached_property
    def overwritten(self) -> int:
        """How many of the rank's first calls the ring buffer no longer has; 0 for a dump without ended calls."""
        return self.calls[0].record if self.holds_finished else 0

    @cached_property
    def is_whole(self) -> bool:
        """Whether every call that the rank has made is in it."""
        return bool(self.calls) and self.calls[0].record == 0 and self.calls[-1].record == len(self.calls) - 1

    @cached_property
    def by_group(self) -> dict[str, tuple[Call, ...]]:
        """The calls of each group."""
        groups: dict[str, list[Call]] = {}
        for call in self.calls:
            groups.setdefault(call.group, []).append(call)
        return {name: tuple(calls) for name, calls in groups.items()}

    def progress_in(self, group: str) -> Progress | None:
        """Return the numbers of the rank's last calls in a group; None if the dump does not say so.

        `pg_status` has numbers for groups and `pg_config` names. Both rise with the order in which the rank first used
        its groups, so if there are as many of one as of the other, they pair in order.
        """
        if calls := self.by_group.get(group):
            return self.progress.get(calls[0].group_id)
        names = sorted(map(int, filter(str.isdecimal, self.groups)))
        if len(names) != len(self.groups) or len(names) != len(self.progress):
            return None
        pairs = dict(zip(map(str, names), sorted(self.progress), strict=True))
        known = all(pairs.get(name) == calls[0].group_id for name, calls in self.by_group.items())
        return self.progress[pairs[group]] if known and group in pairs else None
