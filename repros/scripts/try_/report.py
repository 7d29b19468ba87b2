"""What was seen of a script, as a redacted report for an upstream issue."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from repros.advise.report.redact import MachineIdentity, Redactor
from repros.advise.report.script import ScriptReport, ScriptRunSummary
from repros.advise.report.tracebacks import ScriptVersions, last_traceback
from repros.model import Device
from repros.scripts.try_.run import Attempt, Task
from repros.scripts.try_.sight import Status

Collect = Callable[[str], tuple[str, str | None]]
"""Takes a stack's name; returns the output of `torch.utils.collect_env` there, or why there is none."""
_FOLDER = r'File "(?P<path>[^"\n]*/repros-[^"/\n]+/%s)"'


def report_of(task: Task, seen: Sequence[Attempt], collect: Collect, identity: MachineIdentity) -> ScriptReport:
    """Return the redacted report of a script's runs; stacks on which it did not run are left out.

    Args:
        task: what ran.
        seen: its runs.
        collect: describes a stack's environment.
        identity: facts about this machine that must not appear.
    """
    redactor = Redactor(identity)
    options = task.options
    is_launched = not options.own and (options.ranks > 1 or options.launched)
    launcher = f"torchrun --nproc-per-node {options.ranks}" if is_launched else "python"
    runs = [_run(task, each, collect, redactor) for each in seen if each.sight.status is not Status.NOT_RUN]
    return redactor.redact_value(  # type: ignore[no-any-return]
        ScriptReport(
            task.script.name,
            task.python_script.source,
            " ".join([launcher, task.script.name, *task.arguments]),
            Device.CPU if options.gpus is None else Device.SIM,
            tuple(runs),
            task.needs.packages,
        )
    )


def _run(task: Task, seen: Attempt, collect: Collect, redactor: Redactor) -> ScriptRunSummary:
    sight = seen.sight
    who = f" in {', '.join(sight.ranks)}" if len(sight.places) > 1 and sight.ranks else ""
    output, problem = collect(seen.stack)
    return ScriptRunSummary(
        seen.stack,
        f"{sight.status.value}{who}",
        sight.signature,
        _places(seen),
        _traceback(task, seen, redactor) if sight.status is Status.EXCEPTION else "",
        seen.python,
        platform.platform(),
        seen.versions,
        output,
        problem,
    )


def _places(seen: Attempt) -> tuple[str, ...]:
    sight = seen.sight
    if sight.status is Status.HANG:
        return tuple(
            f"{each.rank} {each.ending}{f' in {each.call}' if each.call else ''}"
            f"{f', called at {each.called_at}' if each.called_at else ''}"
            for each in sight.places
        )
    return sight.chain[0].frames if sight.chain else ()


def _traceback(task: Task, seen: Attempt, redactor: Redactor) -> str:
    """Return the last traceback of the logs, which name the script by the folder that it ran in."""
    if seen.folder is None:
        return ""
    name = re.compile(_FOLDER % re.escape(task.script.name))
    logs = (seen.folder / "main.log", *sorted(seen.folder.glob("processes/*/log.txt")))
    texts = (log.read_text("utf-8", "replace") for log in logs if log.is_file())
    path = next((found["path"] for text in texts if (found := name.search(text))), str(Path(task.script.name)))
    lines = tuple(line.strip() for line in task.python_script.source.split("\n"))
    numbers = {number: number for number in range(1, len(lines) + 1)}
    return last_traceback(
        [seen.folder], ScriptVersions(path, task.script.name, task.script.name, lines, numbers), redactor
    )
