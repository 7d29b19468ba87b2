"""The report of `repros try --json`, a public format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.messages.json_format import explanations_to_json
from repros.diagnose.watch.json_format import finding_to_json
from repros.scripts.try_.job import describe_shell
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import Task

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


def runs_to_json(task: Task, runs: Iterable[ScriptRun]) -> dict[str, Any]:
    """Return the runs as an object for JSON."""
    limits = task.limits
    return {
        "schema": SCHEMA,
        "script": task.script.origin,
        "packages": list(task.needs.packages),  # in its PEP 723 block and its imports
        "walls": asdict(task.sandbox),
        "shell": list(describe_shell(task)),  # variables that may change results: left out, and in effect
        "seconds": limits.seconds,
        "memory": limits.memory,
        "file_size": limits.file_size,
        "stacks": [_run_to_json(run) for run in runs],
    }


def _run_to_json(run: ScriptRun) -> dict[str, Any]:
    outcome, known = run.outcome, run.known
    return {
        "stack": run.stack,
        "python": run.environment.python_version,
        "versions": dict(run.versions),
        "asks_for": list(run.other_releases),  # required, and in another version on the stack
        "wanted": list(run.wanted),  # by `--with`; empty for the stack itself
        # `version` is null for a removed package, `instead_of` for one that the stack does not have.
        "changes": [
            {"package": change.name, "version": change.version, "instead_of": change.before} for change in run.changes
        ],
        "lacks": list(run.lacks),  # its absence prevented the run, or failed an import
        "status": outcome.status.value,
        "signature": outcome.signature,
        "ranks": list(outcome.ranks),
        "chain": list(map(asdict, outcome.chain)),
        "places": list(map(asdict, outcome.locations)),
        # Of rank 0 if there are several; empty if an exception explains the ending.
        "last_lines": list(outcome.last_lines),
        "note": outcome.note,
        # Of a script from an issue: whether the run did what the issue reports.
        "reported": _comparison_to_json(run),
        "seconds": round(run.seconds, 1),
        "logs": str(run.folder) if run.folder else None,
        "match": {**match_to_json(known.match), **explanations_to_json(known.explanations)} if known else None,
        "findings": [finding_to_json(finding, ids) for finding, ids in known.findings] if known else [],
    }


def _comparison_to_json(run: ScriptRun) -> dict[str, str] | None:
    found = run.comparison
    return {"agreement": found.agreement.value, "reason": found.reason} if found else None
