"""The report of `repros bisect SCRIPT --json`, a public format."""

from __future__ import annotations

from typing import Any

from repros.scripts.bisect.script.bisection import ScriptBisection
from repros.scripts.bisect.script.text import describe_script_outcome

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


def script_bisection_to_json(bisection: ScriptBisection) -> dict[str, Any]:
    """Return a bisection as an object for JSON."""
    question, change = bisection.question, bisection.change
    versions = [str(release.version) for release in question.releases]
    patterns = question.patterns
    return {
        "schema": SCHEMA,
        "script": question.task.script.origin,
        "arguments": list(question.task.arguments),
        "package": question.package,
        "stack": question.stack.name,
        "runs": question.runs,
        "good": patterns.good.text if patterns.good else None,
        "bad": patterns.bad.text if patterns.bad else None,
        # The older and the newer release; `change` is null if both show the same.
        "compared": [versions[bisection.old], versions[bisection.new]],
        "change": None
        if change is None or change.free is None
        else {
            # The last release that shows what the older one shows, the first that shows what the newer one does, and
            # the examined ones between them that show neither.
            "until": versions[change.free],
            "since": versions[change.affected],
            "unknown": [versions[number] for number in change.unknown],
        },
        "releases": [
            {
                "version": versions[number],
                "date": str(question.releases[number].date),
                "shows": answer.shown or None,  # equal for two releases that show the same
                "why": answer.why,
                "versions": dict(answer.versions),
            }
            for number, answer in sorted(bisection.answers.items())
        ],
        "candidates": versions,
        "says": describe_script_outcome(bisection),
    }
