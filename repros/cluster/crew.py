"""The crew: the process of this run on each node of the cluster, started where a node joins, missed where one dies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from repros.cluster.identity import Identity, own_identity
from repros.cluster.node import News, Node
from repros.model.errors import ReprosError

Ref = Any
"""A value that a node has not answered yet: `ray.ObjectRef`, or that of Ray's client."""

_GREETING = 90.0
"""Seconds that a node gets to start a worker and import repros."""
_SILENCE = 60.0
"""Seconds without an answer after which a process counts as lost: it is stopped, or its node is out of reach."""
_LOOK = 1.0
"""Seconds between two looks at the cluster's nodes."""
_FAREWELL = 8.0
"""Seconds that the nodes get to end their cells."""
_THREADS = 16
"""Threads of a node's process beside those of its cells."""
_CELLS_PER_CORE = 5
"""The most cells that run side by side for each core: each needs a quarter of one, or waits."""


@dataclass(eq=False)
class Member:
    """The process of this run on one node."""

    id: str
    """Ray's id of the node."""
    name: str
    """The node in a sentence."""
    cores: float
    gpus: int
    memory: int
    process: Any
    """The handle of its :class:`~repros.cluster.node.Node`, or of a kind of it."""
    news: Ref
    """Its next news."""
    heard: float
    """When it answered last."""
    running: frozenset[str] = frozenset()
    """The tickets of its cells, as of its last news."""

    def pin(self) -> NodeAffinitySchedulingStrategy:
        """Return the strategy by which a task runs on this node or not at all."""
        return NodeAffinitySchedulingStrategy(self.id, soft=False)


class Crew:
    """The members, by the ids of their nodes."""

    def __init__(self, report_progress: Callable[[str], None], make: type[Node] = Node, *arguments: object) -> None:
        """Take who receives lines of progress, and what the process on each node is made of."""
        self.members: dict[str, Member] = {}
        self._report_progress = report_progress
        self._make, self._arguments = make, arguments
        self._refused: set[str] = set()
        self._greeted: dict[Ref, tuple[Mapping[str, Any], float]] = {}
        self._looked = 0.0

    def gather(self) -> None:
        """Start the run's process on each node that there is.

        Raises:
            ReprosError: a node has no repros, or another one, or no node has a processor for cells.
        """
        greeted = _greet(_usable_nodes())
        if greeted:
            ray.wait(list(greeted), num_returns=len(greeted), timeout=_GREETING)
        for ref, (node, _) in greeted.items():
            if problem := _answer(ref):
                raise ReprosError(f"the node {_name(node)} has {problem}; install the same there.")
            if problem is None:
                self._hire(node)
        if not self.members:
            raise ReprosError("no node of the Ray cluster has room for cells; expected one with at least one CPU.")

    def look(self) -> tuple[list[Member], list[tuple[Member, str]]]:
        """Look at the cluster's nodes, at most once a second.

        Returns:
            The members that are new, and those that are lost, with the reason.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return [], []
        self._looked = now
        try:
            nodes = _usable_nodes()
        except RayError:  # the head is out of reach; if it stays so, Ray ends this process
            return [], []
        gone = [(member, "the node is gone") for id_, member in self.members.items() if id_ not in nodes]
        late = [each for each in self.members.values() if each.id in nodes and now - each.heard > _SILENCE]
        gone += [(member, f"no answer for {_SILENCE:.0f} s") for member in late if not _is_there(member.news)]
        for member, _ in gone:
            self.dismiss(member)
        known = {*self.members, *self._refused, *(node["NodeID"] for node, _ in self._greeted.values())}
        self._greeted |= _greet({id_: node for id_, node in nodes.items() if id_ not in known})
        return [self._hire(node) for node in self._welcome()], gone

    def _welcome(self) -> list[Mapping[str, Any]]:
        """Return the nodes that have answered meanwhile and have the same repros; say which have not."""
        same = []
        for ref, (node, asked) in list(self._greeted.items()):
            if not _is_there(ref) and time.monotonic() - asked < _GREETING:
                continue
            del self._greeted[ref]
            if problem := _answer(ref):
                self._refused.add(node["NodeID"])
                self._report_progress(f"left out: the node {_name(node)}, which has {problem}")
            elif problem is None:
                same.append(node)
        return same

    def hear(self, member: Member) -> News | str:
        """Return a member's news, which have come, and ask for the next; or why it is lost."""
        try:
            news: News = ray.get(member.news)
        except RayError as error:
            self.dismiss(member)
            return first_line(error)
        member.heard, member.running = time.monotonic(), news.running
        member.news = member.process.news.remote()
        return news

    def dismiss(self, member: Member) -> None:
        """Kill a member's process, whose reaper ends its cells."""
        self.members.pop(member.id, None)
        with contextlib.suppress(RayError, ValueError):
            ray.kill(member.process)

    def refuse(self, member: Member) -> None:
        """Go on without a member whose node cannot do what the others do."""
        self._refused.add(member.id)
        self.dismiss(member)

    def close(self) -> None:
        """End every member's cells, and then its process."""
        ends = [member.process.close.remote() for member in self.members.values()]
        if ends:
            with contextlib.suppress(RayError):
                ray.wait(ends, num_returns=len(ends), timeout=_FAREWELL)
        for member in list(self.members.values()):
            self.dismiss(member)

    def _hire(self, node: Mapping[str, Any]) -> Member:
        has = node["Resources"]
        pin = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        threads = _THREADS + int(has["CPU"] * _CELLS_PER_CORE)
        options = {"num_cpus": 0, "max_concurrency": threads, "scheduling_strategy": pin}
        process = ray.remote(self._make).options(**options).remote(*self._arguments)
        member = Member(
            id=node["NodeID"],
            name=_name(node),
            cores=has["CPU"],
            gpus=int(has.get("GPU", 0)),
            memory=int(has.get("memory", 0)),
            process=process,
            news=process.news.remote(),
            heard=time.monotonic(),
        )
        self.members[member.id] = member
        return member


def _usable_nodes() -> dict[str, Mapping[str, Any]]:
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0}


def most_gpus() -> int:
    """Return the most GPUs of one node."""
    return max((int(node["Resources"].get("GPU", 0)) for node in _usable_nodes().values()), default=0)


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})"


def first_line(error: BaseException) -> str:
    """Return what has happened in one line, from one of Ray's errors, whose text has many."""
    text = str(getattr(error, "cause", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


def _greet(nodes: Mapping[str, Mapping[str, Any]]) -> dict[Ref, tuple[Mapping[str, Any], float]]:
    """Ask each node which repros it has; return the nodes and the times by their answers, which are to come."""

    def ask() -> Identity | str:
        # Sent by its code, since what it asks is whether the node has repros.
        try:
            from repros.cluster.identity import own_identity as identity_there  # noqa: PLC0415 - see above
        except ImportError as error:
            return f"no repros ({error})"
        return identity_there()

    question = ray.remote(ask)
    asked = {}
    for id_, node in nodes.items():
        pin = NodeAffinitySchedulingStrategy(id_, soft=False)
        ref = question.options(num_cpus=0, max_retries=0, scheduling_strategy=pin).remote()
        asked[ref] = (node, time.monotonic())
    return asked


def _is_there(ref: Ref) -> bool:
    """Return whether an answer, or an error in its place, has come."""
    return bool(ray.wait([ref], timeout=0)[0])


def _answer(ref: Ref) -> str | None:
    """Return what is different on a node that was greeted, None if nothing is, and "" if the node is gone."""
    try:
        answer = ray.get(ref, timeout=0)
    except ray.exceptions.GetTimeoutError:
        return f"not answered for {_GREETING:.0f} s"
    except ray.exceptions.RayTaskError as error:  # what is sent cannot be read there
        return f"another repros ({first_line(error)})"
    except RayError:
        return ""
    return answer if isinstance(answer, str) else own_identity().differs(answer)


def pending_news(members: Iterable[Member]) -> dict[Ref, Member]:
    """Return the members by the news that are to come."""
    return {member.news: member for member in members}
