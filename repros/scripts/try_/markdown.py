"""The runs of an issue's script as a comment for its thread: eight lines for two releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from repros import __version__
from repros.advise.report.markdown import code, table_code
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.reported import Agreement
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import Task

_LONGEST = 100
"""Characters of what a run printed or raised."""
_PROJECT = "repros"
_LOGGED = re.compile(r"\[?[IWEF]\d{4} \d\d:|\S+:\d+: \w*Warning: ")
"""A line of torch's logger, or a warning: neither is what the script printed."""


def comment(task: Task, runs: Sequence[ScriptRun], command: str, found: str = "") -> str:
    """Return the comment; it may still identify this machine.

    Args:
        task: the script, and how it ran.
        runs: its runs.
        command: what runs it again.
        found: a sentence on the releases between which the outcome changes; empty if they are unknown.
    """
    return "\n".join(_lines(task, runs, command, found))


def _lines(task: Task, runs: Sequence[ScriptRun], command: str, found: str) -> Iterator[str]:
    ran = [run for run in runs if run.outcome.status is not Status.NOT_RUN]
    options = task.options
    device = f"{options.gpus} simulated GPUs" if options.gpus else "CPU"
    ranks = f", {options.ranks} ranks" if options.ranks > 1 else ""
    yield f"The script of this issue{_location(task)}, run by {_PROJECT} {__version__} on {device}{ranks}:"
    yield ""
    yield "| releases | ended | compared with the report |"
    yield "|---|---|---|"
    for run in ran:
        versions = ", ".join(f"{name} {version}" for name, version in run.main_versions.items())
        compared = run.comparison.agreement.value if run.comparison else ""
        yield f"| {versions} (Python {run.environment.python_version}) | {_ending(run)} | {_bold(compared)} |"
    yield ""
    yield " ".join(filter(None, [found or _change(ran), _not_run(task, ran), f"Again: {code(command)}"]))


def _location(task: Task) -> str:
    """Return ` (block 1 of 2 of the issue)`, and nothing of the file in which it was saved here."""
    stated = task.issue.code if task.issue else None
    return f" ({stated.location} of the issue)" if stated else ""


def _not_run(task: Task, runs: Sequence[ScriptRun]) -> str:
    """Return the releases that the issue states and no run had; empty if there are none."""
    missing = []
    for name, (release, *_) in (task.issue.versions if task.issue else {}).items():
        had = [one for run in runs if (one := _release_of(run, name))]
        is_python = name == "python"  # its patch releases differ in nothing that is reported
        wanted = ".".join(release.split(".")[:2]) if is_python else release
        if had and not any(_is_of(wanted, one) for one in had):
            missing.append(f"{'Python' if is_python else name} {release}")
    return f"Not run, though the issue has it: {', '.join(missing)}." if missing else ""


def _release_of(run: ScriptRun, name: str) -> str:
    return run.environment.python_version if name == "python" else run.versions.get(name, "")


def _is_of(stated: str, release: str) -> bool:
    """Return whether a release is the stated one, or one of it: 3.11.4 is of 3.11, and 2.6.0+cpu of 2.6.0."""
    return f"{release.partition('+')[0]}.".startswith(f"{stated.partition('+')[0]}.")


def _bold(text: str) -> str:
    return f"**{text}**" if text else ""


def _ending(run: ScriptRun) -> str:
    """Return how a run ended: its exception, or the last line that it printed."""
    outcome = run.outcome
    if outcome.chain:
        link = outcome.chain[0]
        at = f" at {table_code(link.frames[-1])}" if link.frames else ""
        return f"{table_code(_cut(f'{link.type}: {link.message}'))}{at}"
    last = next((line for line in reversed(outcome.last_lines) if not _LOGGED.match(line)), "")
    printed = f", printed {table_code(_cut(last))}" if last else ""
    return f"{outcome.signature or outcome.status.value}{printed}"


def _change(runs: Sequence[ScriptRun]) -> str:
    """Return between which of two runs the outcome changes."""
    by_agreement = {run.comparison.agreement: run for run in runs if run.comparison}
    as_reported, other = by_agreement.get(Agreement.AS_REPORTED), by_agreement.get(Agreement.NOT_AS_REPORTED)
    if as_reported is None or other is None:
        return ""
    old, new = as_reported.main_versions, other.main_versions
    changed = ", ".join(f"{name} {old[name]} and {new[name]}" for name in old if new.get(name) not in {old[name], None})
    return f"It changes between {changed}." if changed else ""


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]} [...]"
