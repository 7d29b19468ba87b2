"""The runs of a script, for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from repros.diagnose.match.reasons import confidence_reason
from repros.diagnose.messages.text import describe_meaning
from repros.engine.environment import Targets
from repros.engine.environments.downloads import Downloads, find_downloads
from repros.model.errors import ReprosError
from repros.scripts.try_.job import describe_shell
from repros.scripts.try_.known import Known
from repros.scripts.try_.outcome import Link, ScriptOutcome, Status
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.sandbox import Sandbox
from repros.scripts.try_.task import Task
from repros.text.layout import Paragraphs, Section
from repros.text.wording import count, relative_to_cwd, wrap

_OPEN = {
    "network": "the network",
    "system": "names, modes and times of your files, and the shared memory, terminals and sockets of other programs",
    "processes": "your other processes, which it sees and may signal, and the memory that all processes share",
    "files": "the contents of your files",
    "calls": "your other processes by tracing, and more of the kernel",
}
"""What is open without an isolation of the sandbox."""
_VIA = {"cause": "caused by", "context": "while handling", "group": "one of"}
_MOST_LINKS = 4
_LONGEST_MESSAGE = 400
_MOST_NAMED = 6
"""Packages to download, or links, that are named."""
_MEGABYTE, _GIGABYTE = 2**20, 2**30
_STYLES = {Status.CLEAN: "green", Status.NOT_RUN: "yellow", Status.NOT_JUDGED: "yellow"}


def format_warning(task: Task, width: int) -> str:
    """Return what confines untrusted code, and what does not, in lines of at most `width` columns."""
    sandbox, limits = task.sandbox, task.limits
    hidden = {"network": sandbox.network, "files of yours": sandbox.files, "secrets of yours": True}
    without = ", ".join(f"no {name}" for name, is_hidden in hidden.items() if is_hidden)
    usage = f"{limits.seconds:g} s, {_size(limits.memory)} a process, {_size(limits.file_size)} a file"
    missing = [format_open(sandbox)] if sandbox.problems else []
    if left_out := ", ".join(str(relative_to_cwd(path)) for path in task.script.left_out[:_MOST_NAMED]):
        missing.append(f"Not copied, since it is a link to another folder, or no ordinary file: {left_out}.")
    return "\n".join(wrap(" ".join([f"sandbox: {without}; {usage}.", *missing, *describe_shell(task)]), width))


def format_open(sandbox: Sandbox) -> str:
    """Return the sentence that says what is open to a script, as this system cannot isolate it, and why."""
    reached = "; ".join(f"{_OPEN[name]} ({why})" for name, why in sandbox.problems.items())
    return f"This system cannot build the whole sandbox, so the script reaches {reached}."


def refuse_no_run(started: Iterable[ScriptRun]) -> Iterator[ScriptRun]:
    """Yield runs as they come.

    Raises:
        ReprosError: after the last one, if the script ran nowhere.
    """
    runs = []
    for run in started:
        runs.append(run)
        yield run
    if all(run.outcome.status is Status.NOT_RUN for run in runs):
        notes = (*(run.outcome.note for run in runs), describe_missing(runs))
        raise ReprosError(f"the script ran nowhere: {'; '.join(filter(None, notes))}.")


def format_runs(runs: Iterable[ScriptRun]) -> Iterator[Section]:
    """Yield a script's runs as they come, and after them the stacks on which it did not run."""
    skipped = []
    for run in runs:
        if run.outcome.status is Status.NOT_RUN:
            skipped.append(run)
        else:
            yield format_run(run)
    yield from map(format_run, skipped)


def format_run(run: ScriptRun) -> Section:
    """Return a script's run on one stack."""
    outcome, known, headline = run.outcome, run.known, _headline(run)
    explanations = known.explanations[:1] if known and outcome.status is Status.EXCEPTION else ()
    installed = {"python": run.environment.python_version, **run.versions} if run.folder else {}
    paragraphs = [
        Paragraphs("reported", [str(run.comparison)] if run.comparison else []),
        Paragraphs("seen", [*_failure(outcome)]),
        Paragraphs("where" if len(outcome.locations) == 1 else "ranks", [*_locations(outcome)]),
        Paragraphs("evidence" if outcome.status is Status.HANG else "note", [_note(run)]),
        Paragraphs("log", outcome.last_lines, is_wrapped=False),
        *(_describe_known(known) if known else ()),
        *(paragraph for explanation in explanations for paragraph in describe_meaning(explanation)),
        Paragraphs("asks for", [", ".join(run.other_releases)]),
        Paragraphs("with", [", ".join(map(str, run.changes))]),
        Paragraphs("versions", [", ".join(f"{name} {version}" for name, version in installed.items())]),
        Paragraphs("logs", [str(relative_to_cwd(run.folder))] if run.folder else []),
    ]
    return Section(run.stack, headline, paragraphs, f"bold {_STYLES.get(outcome.status, 'red')}")


def format_plan(task: Task, where: Targets) -> Iterator[Section]:
    """Yield for each stack the packages that a script needs, and what its environment would download."""
    names = dict.fromkeys(("torch", *task.needs.packages))
    for stack in (where.known[name] for name in where.stacks):
        pinned = (f"{name} {stack.pins[name].version}" for name in names if name in stack.pins)
        versions = ", ".join((f"python {stack.python}", *pinned))
        download = _describe_downloads(find_downloads(stack))
        yield Section(stack.name, "", [Paragraphs("versions", [versions]), Paragraphs("download", [download])])


def _describe_downloads(downloads: Downloads) -> str:
    if not downloads.sizes:
        return "nothing: the environment is ready, or uv has all of it"
    total = "of unknown size" if downloads.total is None else _size_of_download(downloads.total)
    number = len(downloads.sizes)
    named = f": {', '.join(downloads.sizes)}" if number <= _MOST_NAMED else ""
    torch = "; torch is there already" if downloads.has_torch else ""
    return f"{count(number, 'package')}, {total}{named}{torch}"


def _size_of_download(size: int) -> str:
    return f"up to {size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"  # noqa: PLR2004 - bytes of a GB


def describe_missing(runs: Iterable[ScriptRun]) -> str:
    """Return the options that add what runs lacked; empty if they lacked nothing."""
    lacking = dict.fromkeys(requirement for run in runs for requirement in run.lacks)
    options = " ".join(f"--with {shlex.quote(requirement)}" for requirement in lacking)
    adds = "adds it" if len(lacking) == 1 else "adds them"
    return options and f"{options} {adds} (name only packages that you trust)"


def _note(run: ScriptRun) -> str:
    return "; ".join(filter(None, (run.outcome.note, describe_missing([run]))))


def _headline(run: ScriptRun) -> str:
    outcome = run.outcome
    ranks = f" in {', '.join(outcome.ranks)}" if len(outcome.locations) > 1 and outcome.ranks else ""
    after = f" after {run.seconds:.1f} s"
    match outcome.status:
        case Status.CLEAN:
            return f"clean{after}"
        case Status.TIME_LIMIT:
            return f"timed out{after}"
        case Status.NOT_RUN | Status.NOT_JUDGED | Status.INCOMPLETE:
            return outcome.status.value
        case _:
            return f"{outcome.status.value}{ranks}{after}"


def _failure(outcome: ScriptOutcome) -> Iterator[str]:
    """Yield the exceptions of a chain, each with its innermost frames, or the signature of another ending."""
    if not outcome.chain:
        yield outcome.signature or "" if outcome.status in {Status.EXIT, Status.SIGNAL} else ""
    for link in outcome.chain[:_MOST_LINKS]:
        yield _link(link)
        yield from (f"  at {frame}" for frame in link.frames)
    if len(outcome.chain) > _MOST_LINKS:
        yield f"and {count(len(outcome.chain) - _MOST_LINKS, 'exception')} more"


def _link(link: Link) -> str:
    message = " ".join(link.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    return " ".join(filter(None, [_VIA.get(link.via or ""), f"{link.type}: {message}".removesuffix(": ")]))


def _locations(outcome: ScriptOutcome) -> Iterator[str]:
    """Yield where each rank was, unless the headline says it of all."""
    ended = {location.rank for location in outcome.locations if location.call is None}
    if outcome.status is Status.CLEAN or ended == {*outcome.ranks}:
        return
    for location in outcome.locations:
        yield f"{location.rank} {location}" if len(outcome.locations) > 1 else str(location)


def _describe_known(known: Known) -> Iterator[Paragraphs]:
    """Yield the documented failures in the logs, and the findings of the watch."""
    candidates = [
        f"{candidate.repro.id} {candidate.repro.title} ({candidate.confidence.value}: {confidence_reason(candidate)}); "
        f"repros show {candidate.repro.id}"
        for candidate in known.match.candidates
    ]
    yield Paragraphs("known", candidates)
    for finding, ids in known.findings:
        rank = f"rank {finding.rank}, " if finding.rank is not None else ""
        yield Paragraphs("watch", [f"{finding.text} ({rank}check {finding.check})"])
        names = [f"{one.repro.id} {one.repro.title} ({one.confidence.value})" for one in ids]
        yield Paragraphs("", names)
    yield Paragraphs("watch", [f"failed in {known.watch_failed}"] if known.watch_failed else [])


def _size(size: int) -> str:
    return f"{size / _GIGABYTE:.3g} GB" if size >= _GIGABYTE else f"{size / _MEGABYTE:.0f} MB"
