"""The runs of a script as a redacted report for an upstream issue."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from repros.advise.report.redact import MachineIdentity, Redactor
from repros.advise.report.script import ScriptReport, ScriptRunSummary
from repros.advise.report.tracebacks import ScriptVersions, last_traceback
from repros.engine.launch import logs
from repros.scripts.try_.job import device_of
from repros.scripts.try_.outcome import ScriptOutcome, Status
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import Task

Collect = Callable[[str], tuple[str, str | None]]
"""Takes a stack's name; returns the output of `torch.utils.collect_env` there, or why there is none."""
_FOLDER = r'File "(?P<path>[^"\n]*/repros-[^"/\n]+/%s)"'


def report_of(task: Task, runs: Sequence[ScriptRun], collect: Collect, identity: MachineIdentity) -> ScriptReport:
    """Return the redacted report of a script's runs, without the stacks on which it did not run.

    Args:
        task: the script, and how it ran.
        runs: its runs.
        collect: describes a stack's environment.
        identity: facts about this machine that must not appear.
    """
    redactor = Redactor(identity)
    options = task.options
    is_launched = not options.own and (options.ranks > 1 or options.launched)
    launcher = f"torchrun --nproc-per-node {options.ranks}" if is_launched else "python"
    reported = [_report(task, run, collect, redactor) for run in runs if run.outcome.status is not Status.NOT_RUN]
    return redactor.redact_value(  # type: ignore[no-any-return]
        ScriptReport(
            task.script.name,
            task.python_script.source,
            " ".join([launcher, task.script.name, *task.arguments]),
            device_of(task),
            tuple(reported),
            task.needs.packages,
        )
    )


def _report(task: Task, run: ScriptRun, collect: Collect, redactor: Redactor) -> ScriptRunSummary:
    outcome = run.outcome
    ranks = f" in {', '.join(outcome.ranks)}" if len(outcome.locations) > 1 and outcome.ranks else ""
    output, problem = collect(run.stack)
    return ScriptRunSummary(
        *(run.environment.python_version, platform.platform(), run.versions, output, problem),
        *(run.stack, f"{outcome.status.value}{ranks}", outcome.signature, _locations(outcome)),
        _traceback(task, run, redactor) if outcome.status is Status.EXCEPTION else "",
        outcome.last_lines if outcome.status is Status.CLEAN else (),
    )


def _locations(outcome: ScriptOutcome) -> tuple[str, ...]:
    if outcome.status is Status.HANG:
        return tuple(f"{location.rank} {location}" for location in outcome.locations)
    return outcome.chain[0].frames if outcome.chain else ()


def _traceback(task: Task, run: ScriptRun, redactor: Redactor) -> str:
    """Return the last traceback of the logs, which name the script by its working folder."""
    if run.folder is None:
        return ""
    name = re.compile(_FOLDER % re.escape(task.script.name))
    texts = (log.decode("utf-8", "replace") for log in logs.read(run.folder, logs.find(run.folder)))
    path = next((match["path"] for text in texts if (match := name.search(text))), str(Path(task.script.name)))
    lines = tuple(line.strip() for line in task.python_script.source.split("\n"))
    numbers = {number: number for number in range(1, len(lines) + 1)}
    return last_traceback(
        [run.folder], ScriptVersions(path, task.script.name, task.script.name, lines, numbers), redactor
    )
