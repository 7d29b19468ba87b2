"""The report of `repros try --json`, a public format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from repros.diagnose.match.json_format import MatchJson, match_to_json
from repros.diagnose.watch.json_format import FindingJson, finding_to_json
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import Task

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class LinkJson(TypedDict):
    """An exception of a chain."""

    type: str
    message: str
    frames: list[str]
    """The innermost frames, outermost first."""
    via: str | None


class RankLocationJson(TypedDict):
    """Where a rank was at the end of the run."""

    rank: str
    ending: str
    call: str | None
    called_at: str | None


class ChangeJson(TypedDict):
    """A package of which the stack itself has another release."""

    package: str
    version: str | None
    """null if it is removed."""
    instead_of: str | None
    """The stack's own; null if the stack has none."""


class StackJson(TypedDict):
    """A run on a stack."""

    stack: str
    python: str
    versions: dict[str, str]
    asks_for: list[str]
    """Releases that the script requires and the stack has in another version."""
    wanted: list[str]
    """The requirements of `--with`; empty for the stack itself."""
    changes: list[ChangeJson]
    """The packages that these have changed."""
    lacks: list[str]
    """Requirements whose absence prevented the run, or failed an import."""
    status: str
    signature: str | None
    ranks: list[str]
    chain: list[LinkJson]
    places: list[RankLocationJson]
    last_lines: list[str]
    """The end of the output, of rank 0 if there are several, unless an exception explains the ending."""
    note: str | None
    seconds: float
    logs: str | None
    match: MatchJson | None
    """As `repros match --json` prints it."""
    findings: list[FindingJson]
    """As `repros watch --json` writes them."""


class SandboxJson(TypedDict):
    """The sandbox."""

    network: bool
    files: bool
    problems: dict[str, str]


class TryJson(TypedDict):
    """The whole report."""

    schema: int
    script: str
    packages: list[str]
    """Packages in its PEP 723 block and its imports."""
    walls: SandboxJson
    seconds: float
    memory: int
    file_size: int
    stacks: list[StackJson]


def runs_to_json(task: Task, runs: Iterable[ScriptRun]) -> TryJson:
    """Return the runs as an object for JSON."""
    sandbox, limits = task.sandbox, task.limits
    return {
        "schema": SCHEMA,
        "script": task.script.origin,
        "packages": list(task.needs.packages),
        "walls": {"network": sandbox.network, "files": sandbox.files, "problems": dict(sandbox.problems)},
        "seconds": limits.seconds,
        "memory": limits.memory,
        "file_size": limits.file_size,
        "stacks": [_run_to_json(run) for run in runs],
    }


def _run_to_json(run: ScriptRun) -> StackJson:
    outcome, known = run.outcome, run.known
    return {
        "stack": run.stack,
        "python": run.environment.python_version,
        "versions": dict(run.versions),
        "asks_for": list(run.other_releases),
        "wanted": list(run.wanted),
        "changes": [
            {"package": change.name, "version": change.version, "instead_of": change.before} for change in run.changes
        ],
        "lacks": list(run.lacks),
        "status": outcome.status.value,
        "signature": outcome.signature,
        "ranks": list(outcome.ranks),
        "chain": [
            {"type": link.type, "message": link.message, "frames": list(link.frames), "via": link.via}
            for link in outcome.chain
        ],
        "places": [
            {
                "rank": location.rank,
                "ending": location.ending,
                "call": location.call,
                "called_at": location.called_at,
            }
            for location in outcome.locations
        ],
        "last_lines": list(outcome.last_lines),
        "note": outcome.note,
        "seconds": round(run.seconds, 1),
        "logs": str(run.folder) if run.folder else None,
        "match": match_to_json(known.match) if known else None,
        "findings": [finding_to_json(finding, ids) for finding, ids in known.findings] if known else [],
    }
