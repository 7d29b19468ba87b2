"""The answer to a script that was run: on which releases it did what was reported, and what was seen in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from repros.diagnose.issue import Issue
from repros.diagnose.match import Candidate, Confidence
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.kind import Input
from repros.scripts.triage.log_answer import answer_candidate
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.reported import Agreement
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import TaskOptions

_MOST_RANKS = 2
_MOST_OWN_RANKS = 4
"""Ranks that a script may start itself: their number is in its code."""
_DISTRIBUTED = (
    *("init_process_group", "LOCAL_RANK", "Accelerator(", "DistributedDataParallel", "fully_shard", "Trainer("),
    *("Fabric(", "init_device_mesh", "PartialState("),
)
"""What the code of a script has that takes part in several ranks; a configuration for ranks alone starts none."""


def plan_ranks(issue: Issue, source: str) -> TaskOptions:
    """Return the ranks and simulated GPUs on which an issue's script runs.

    Two ranks represent any number that a launcher starts: more cost more, and a failure rarely needs them.

    Args:
        issue: the issue.
        source: its script.
    """
    launch = issue.launch
    stated = launch.ranks or (_MOST_RANKS if launch.launcher else 1)
    takes_part = any(word in source for word in _DISTRIBUTED)
    if launch.is_own:
        ranks = launch.ranks if launch.ranks and 1 < launch.ranks <= _MOST_OWN_RANKS else 1
    else:
        ranks = min(stated, _MOST_RANKS) if takes_part else 1
    return TaskOptions(ranks, own=launch.is_own and ranks > 1, gpus=ranks if issue.gpus.are_used else None)


def complete_run(answer: Answer, given: Input, runs: Sequence[ScriptRun], found: str = "") -> Answer:
    """Return an answer with what the runs of the script show.

    A documented failure in a run that does what was reported is the answer. Otherwise the answer to the text is kept if
    it is one; else the runs are.

    Args:
        answer: that to the text.
        given: the input.
        runs: the runs, the one on the reported releases first.
        found: a sentence on the release that changed it; empty if it was not searched.
    """
    ran = [run for run in runs if run.outcome.status is not Status.NOT_RUN]
    known = next((run for run in ran if _certain(run)), None)
    if known is not None and known.known is not None and not answer.certainty.is_answer:
        answer = replace(answer_candidate(given, known.known.match), next=answer.next)
    if not answer.certainty.is_answer and not answer.repro_id:
        title, certainty = _title(ran, found)
        answer = replace(answer, title=title or answer.title, certainty=certainty or answer.certainty)
    sections = (*_upgrade(ran, found), Section("ran", tuple(map(_describe, runs)), most_lines=4), *_findings(ran))
    # What only reading leaves open has been run.
    kept = [section for section in answer.sections if section.label != "missing"]
    return replace(answer, sections=(*kept, *sections, *_missing(ran)))


def _missing(runs: Sequence[ScriptRun]) -> Iterator[Section]:
    """Yield what a run that did not do what is reported may have lacked."""
    if all(run.comparison and run.comparison.agreement is Agreement.NOT_AS_REPORTED for run in runs):
        text = "what differs from the reporter's run: a real GPU, data, settings, releases that could not be had"
        yield Section("missing", (text,), most_lines=2)


def _certain(run: ScriptRun) -> Candidate | None:
    """Return the documented failure that a run certainly or likely shows, unless it did something unreported."""
    if run.known is None or (run.comparison and run.comparison.agreement is Agreement.NOT_AS_REPORTED):
        return None
    candidates = run.known.match.candidates
    return next((one for one in candidates[:1] if one.confidence is not Confidence.POSSIBLE), None)


def _title(runs: Sequence[ScriptRun], found: str) -> tuple[str, Certainty | None]:
    """Return what the runs say together, and how certain that is; empty if they say nothing."""
    reported, other = find_change(runs)
    if reported and (other or found):
        gone = f", not with {_versions(other, reported)}" if other else ""
        return f"It does what is reported with {_versions(reported, other)}{gone}", Certainty.CERTAIN
    if reported:
        return f"It does what is reported with {_versions(reported)}", Certainty.POSSIBLE
    if finding := next((item for run in runs if run.known for item, _ in run.known.findings), None):
        return finding.text[:1].upper() + finding.text[1:], Certainty.LIKELY
    compared = [run for run in runs if run.comparison and run.comparison.agreement is Agreement.NOT_AS_REPORTED]
    if compared and len(compared) == len(runs):
        return "It does not do what is reported, on any of the releases that were run", None
    return "", None


def find_change(runs: Sequence[ScriptRun]) -> tuple[ScriptRun | None, ScriptRun | None]:
    """Return a run that did what is reported, and one that did not; None where there is none."""
    by_agreement = {run.comparison.agreement: run for run in reversed(runs) if run.comparison}
    return by_agreement.get(Agreement.AS_REPORTED), by_agreement.get(Agreement.NOT_AS_REPORTED)


def changed_packages(one: ScriptRun, other: ScriptRun) -> list[str]:
    """Return the packages that two runs have in different releases: those that the script imports before torch."""
    names = [
        name for name, version in one.main_versions.items() if other.main_versions.get(name) not in {version, None}
    ]
    return sorted(names, key=lambda name: name == "torch")


def _upgrade(runs: Sequence[ScriptRun], found: str) -> Iterator[Section]:
    reported, other = find_change(runs)
    if found:
        yield Section("upgrade", (found,), most_lines=2)
    elif reported and other:
        names = changed_packages(reported, other)
        pins = " ".join(f"{name}>={other.main_versions[name]}" for name in names)
        yield Section("upgrade", (f"{pins} is without it, or a release before: --bisect finds which",), most_lines=2)


def _describe(run: ScriptRun) -> str:
    """Return a run in a sentence: `torch 2.6.0, torchmetrics 1.6.1: as reported: prints nan`."""
    outcome = run.outcome
    ended = outcome.signature or outcome.note or outcome.status.value
    return f"{_versions(run)}: {run.comparison or ended}"


def _versions(run: ScriptRun | None, other: ScriptRun | None = None) -> str:
    """Return the releases of a run, or those of them that another does not have."""
    if run is None or not run.main_versions:
        return run.stack if run else ""
    names = changed_packages(run, other) if other else list(run.main_versions)
    return ", ".join(f"{name} {run.main_versions[name]}" for name in names or run.main_versions)


def _findings(runs: Sequence[ScriptRun]) -> Iterator[Section]:
    """Yield the findings of the watch, each once."""
    texts = {
        " ".join(filter(None, [finding.text, f"at {finding.place}" if finding.place else ""])): None
        for run in runs
        if run.known
        for finding, _ in run.known.findings
    }
    if texts:
        yield Section("found", tuple(texts), most_lines=4)
