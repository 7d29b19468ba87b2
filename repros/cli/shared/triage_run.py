"""`repros triage --run`: a script, or that of an issue, in the sandbox on the report's and the newest releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from packaging.version import Version

from repros.advise.report.redact import redact_machine
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import choose_targets, warn
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.diagnose.issue import Issue, read_issue
from repros.engine.environment import Targets
from repros.engine.own_folder import new_log_folder
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.scripts.bisect.script.bisection import run_script_bisection
from repros.scripts.bisect.script.patterns import parse_patterns
from repros.scripts.bisect.script.question import ask_script
from repros.scripts.bisect.script.text import describe_script_outcome
from repros.scripts.reduce.reduction import ReduceOptions, reduce_script
from repros.scripts.triage.answer import MOST_COMMANDS, Answer
from repros.scripts.triage.kind import Input, InputKind
from repros.scripts.triage.run_answer import changed_packages, complete_run, find_change, plan_ranks
from repros.scripts.try_.markdown import comment
from repros.scripts.try_.request import ScriptRequest, make_task
from repros.scripts.try_.run import LOGS, ScriptRun, run_on_stacks
from repros.scripts.try_.script import Script, read_script
from repros.scripts.try_.task import Task

_TIMEOUT = 60
"""Seconds of one run."""
_REDUCE_SECONDS = 120
_JOBS = 2


@dataclass(frozen=True)
class RunRequest:
    """What to do beyond reading."""

    bisect: bool = False
    """Whether to search for the release that changed the outcome."""
    reduce: bool = False
    """Whether to write a smaller script."""
    weak_sandbox: bool = False
    """Whether the script may run although this system cannot build the whole sandbox."""


@dataclass(frozen=True)
class RunResult:
    """The answer, and the runs behind it."""

    answer: Answer
    task: Task
    runs: tuple[ScriptRun, ...]
    found: str
    """The sentence on the release that changed it; empty if there is none."""

    def comment(self, command: str) -> str:
        """Return the redacted comment for the thread."""
        return redact_machine(comment(self.task, self.runs, command, self.found))


def run_input(given: Input, answer: Answer, places: CatalogueLocations, request: RunRequest) -> RunResult:
    """Run the script of an issue, or a script, and complete the answer to its text.

    Each run is reported on stderr as soon as it is over.

    Raises:
        ReprosError: there is no script, or it ran nowhere.
    """
    issue, script = _read(given)
    report_progress = partial(show_text, console(stderr=True))
    planned = plan_ranks(issue, script.source)
    asked = ScriptRequest(
        ranks=planned.ranks if planned.ranks > 1 and not planned.own else None,
        own_ranks=planned.ranks if planned.own else None,
        gpus=planned.gpus,
        timeout=_TIMEOUT,
    )
    task = make_task(asked, script, issue=issue if given.kind is InputKind.ISSUE else None)
    accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    with interrupt_on_signals():
        where = choose_targets(task, (), (), places, report_progress)
        runs = _run(task, where, places, report_progress)
        found = _bisect(task, runs, where, report_progress) if request.bisect else ""
        commands = _reduce(task, runs, where, given, report_progress) if request.reduce else ()
    answer = complete_run(answer, given, runs, found)
    answer = replace(answer, next=tuple(dict.fromkeys((*commands, *answer.next)))[:MOST_COMMANDS])
    return RunResult(answer, task, runs, found)


def _read(given: Input) -> tuple[Issue, Script]:
    """Return the issue and its script.

    Raises:
        ReprosError: there is no script in the input.
    """
    (document, *others) = given.documents or (None,)
    if document is None or others or given.kind not in {InputKind.ISSUE, InputKind.SCRIPT}:
        raise ReprosError(f"--run needs a script or the text of an issue; this is {given.kind.value}.")
    if given.kind is InputKind.SCRIPT:
        if document.path is None:
            raise ReprosError("--run needs the script in a file; save it, and name it.")
        return Issue(), read_script(document.path)
    issue = read_issue(document.raw.decode("utf-8", "replace"))
    if issue.code is None:
        raise ReprosError(f"{document.name} has no code block that is Python and imports something; nothing was run.")
    location = f"{issue.code.location} of {document.name} (line {issue.code.line})"
    return issue, Script("issue.py", issue.code.source, location)


def _run(
    task: Task, where: Targets, places: CatalogueLocations, report_progress: Callable[[str], None]
) -> tuple[ScriptRun, ...]:
    """Return the runs on all stacks, each shown when it is over.

    Raises:
        ReprosError: the script ran nowhere.
    """
    runs = []
    for run in run_on_stacks(task, where, load_catalogue(places), report_progress, warn):
        outcome = run.outcome
        report_progress(f"{run.stack}: {run.comparison or outcome.signature or outcome.note or outcome.status.value}")
        runs.append(run)
    if all(run.observed is None for run in runs):
        notes = "; ".join(filter(None, (run.outcome.note for run in runs)))
        raise ReprosError(f"the script ran nowhere: {notes}.")
    return tuple(runs)


def _bisect(task: Task, runs: tuple[ScriptRun, ...], where: Targets, report_progress: Callable[[str], None]) -> str:
    """Return a sentence on the release that changed the outcome; empty if no two runs differ."""
    reported, other = find_change(runs)
    packages = changed_packages(reported, other) if reported and other else []
    if not (reported and other and packages):
        report_progress("nothing to bisect: no two of the runs differ in what is reported")
        return ""
    package = packages[0]
    ends = sorted(Version(run.versions[package]) for run in (reported, other))
    printed = reported.comparison.printed if reported.comparison else ""
    patterns = parse_patterns(None, printed or None, None)
    question = ask_script(task, patterns, where.known[reported.stack], package, ends[0], ends[1], 1, None)
    bisection = run_script_bisection(question, question.folder, report_progress, jobs=_JOBS)
    return describe_script_outcome(bisection)[0]


def _reduce(
    task: Task, runs: tuple[ScriptRun, ...], where: Targets, given: Input, report_progress: Callable[[str], None]
) -> tuple[str, ...]:
    """Write a smaller script next to the working folder's files; return the command that reports it."""
    reported, _ = find_change(runs)
    if reported is None:
        report_progress("nothing to reduce: no run did what is reported")
        return ()
    output = Path(f"{Path(given.documents[0].name).stem}.reduced.py")
    if output.exists():
        raise ReprosError(f"{output} exists already; move it, since --reduce writes it.")
    texts = (reported.comparison.printed,) if reported.comparison and reported.comparison.printed else ()
    stack = replace(where, stacks=(reported.stack,))
    quiet = replace(task, options=replace(task.options, watch=False))
    reduction = reduce_script(quiet, stack, new_log_folder(LOGS), ReduceOptions(_REDUCE_SECONDS, _JOBS, texts))
    output.write_text(reduction.source, encoding="utf-8")
    report_progress(f"{output}: {reduction.before[0]} lines became {reduction.after[0]}")
    return (f"repros report --script {output}",)
