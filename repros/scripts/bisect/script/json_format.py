"""The report of `repros bisect SCRIPT --json`, a public format."""

from __future__ import annotations

from typing import TypedDict

from repros.scripts.bisect.script.bisection import ScriptBisection
from repros.scripts.bisect.script.text import describe_script_outcome

SCHEMA = 1
"""Raised whenever a key is renamed or removed, or its meaning changes."""


class AskedJson(TypedDict):
    """An examined release."""

    version: str
    date: str
    shows: str | None
    """The same text for two releases that show the same; null if it gave no answer."""
    why: str
    """What its runs showed, or why it gave no answer."""
    versions: dict[str, str]


class ChangeJson(TypedDict):
    """Where what the program shows changes."""

    until: str
    """The last release that shows what the older one shows."""
    since: str
    """The first one that shows what the newer one shows."""
    unknown: list[str]
    """The examined releases between them that show neither."""


class ScriptBisectionJson(TypedDict):
    """The whole report."""

    schema: int
    script: str
    arguments: list[str]
    package: str
    stack: str
    runs: int
    good: str | None
    bad: str | None
    compared: list[str]
    """The older and the newer release."""
    change: ChangeJson | None
    """null if both show the same."""
    releases: list[AskedJson]
    candidates: list[str]
    says: list[str]
    """The outcome in sentences."""


def script_bisection_to_json(bisection: ScriptBisection) -> ScriptBisectionJson:
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
        "compared": [versions[bisection.old], versions[bisection.new]],
        "change": None
        if change is None or change.free is None
        else {
            "until": versions[change.free],
            "since": versions[change.affected],
            "unknown": [versions[number] for number in change.unknown],
        },
        "releases": [
            {
                "version": versions[number],
                "date": str(question.releases[number].date),
                "shows": answer.shown or None,
                "why": answer.why,
                "versions": dict(answer.versions),
            }
            for number, answer in sorted(bisection.answers.items())
        ],
        "candidates": versions,
        "says": describe_script_outcome(bisection),
    }
