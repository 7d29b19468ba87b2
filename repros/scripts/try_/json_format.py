"""The report of `repros try --json`, a public format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from repros.diagnose.match.json_format import MatchJson, match_to_json
from repros.diagnose.watch.json_format import FindingJson, finding_to_json
from repros.scripts.try_.run import Attempt, Task

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class LinkJson(TypedDict):
    """An exception of a chain."""

    type: str
    message: str
    frames: list[str]
    """The innermost, outermost first."""
    via: str | None


class PlaceJson(TypedDict):
    """Where a rank was in the end."""

    rank: str
    ending: str
    call: str | None
    called_at: str | None


class ChangeJson(TypedDict):
    """A package of which the stack itself has another release."""

    package: str
    version: str | None
    """null if it is left out."""
    instead_of: str | None
    """The stack's own; null if the stack has none."""


class StackJson(TypedDict):
    """What was seen on a stack."""

    stack: str
    python: str
    versions: dict[str, str]
    asks_for: list[str]
    """What the script asks for and the stack has in another release."""
    wanted: list[str]
    """The requirements of `--with`; empty if this is the stack as it is."""
    changes: list[ChangeJson]
    """What they have changed."""
    lacks: list[str]
    """The requirements without which it did not run, or an import in it failed."""
    status: str
    signature: str | None
    ranks: list[str]
    chain: list[LinkJson]
    places: list[PlaceJson]
    last_lines: list[str]
    """The end of what it, or its rank 0, wrote, where no exception says why it ended."""
    note: str | None
    seconds: float
    logs: str | None
    match: MatchJson | None
    """As `repros match --json` prints it."""
    findings: list[FindingJson]
    """As `repros watch --json` writes them."""


class WallsJson(TypedDict):
    """What was between the script and the machine."""

    network: bool
    files: bool
    problems: dict[str, str]


class TryJson(TypedDict):
    """The whole report."""

    schema: int
    script: str
    packages: list[str]
    """What the script needs, by its PEP 723 block and its imports."""
    walls: WallsJson
    seconds: float
    memory: int
    file_size: int
    stacks: list[StackJson]


def attempts_to_json(task: Task, attempts: Iterable[Attempt]) -> TryJson:
    """Return what was seen as an object for JSON."""
    walls, limits = task.walls, task.limits
    return {
        "schema": SCHEMA,
        "script": task.script.origin,
        "packages": list(task.needs.packages),
        "walls": {"network": walls.network, "files": walls.files, "problems": dict(walls.problems)},
        "seconds": limits.seconds,
        "memory": limits.memory,
        "file_size": limits.file_size,
        "stacks": [_attempt_to_json(seen) for seen in attempts],
    }


def _attempt_to_json(seen: Attempt) -> StackJson:
    sight, known = seen.sight, seen.known
    return {
        "stack": seen.stack,
        "python": seen.python,
        "versions": dict(seen.versions),
        "asks_for": list(seen.other_releases),
        "wanted": list(seen.wanted),
        "changes": [
            {"package": each.name, "version": each.version, "instead_of": each.before} for each in seen.changes
        ],
        "lacks": list(seen.lacks),
        "status": sight.status.value,
        "signature": sight.signature,
        "ranks": list(sight.ranks),
        "chain": [
            {"type": link.type, "message": link.message, "frames": list(link.frames), "via": link.via}
            for link in sight.chain
        ],
        "places": [
            {"rank": each.rank, "ending": each.ending, "call": each.call, "called_at": each.called_at}
            for each in sight.places
        ],
        "last_lines": list(sight.last_lines),
        "note": sight.note,
        "seconds": round(seen.seconds, 1),
        "logs": str(seen.folder) if seen.folder else None,
        "match": match_to_json(known.match) if known else None,
        "findings": [finding_to_json(finding, ids) for finding, ids in known.findings] if known else [],
    }
