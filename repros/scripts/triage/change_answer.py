"""The part of an answer about a change of release: what is known to have changed, the difference, the bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from packaging.version import Version

from repros.diagnose.issue.changes import ReleaseChange, find_change
from repros.diagnose.issue.known_changes import find_known_changes, stated_change
from repros.diagnose.messages.release_lists import is_listed, is_version, last_release, releases_between
from repros.model import Repro
from repros.model.affected import affected_text
from repros.scripts.triage.answer import Section
from repros.scripts.triage.report import Report

_MOST_FAILURES = 3
_SOURCES = {
    "accelerate": "huggingface/accelerate/compare/v{}...v{}",
    "datasets": "huggingface/datasets/compare/{}...{}",
    "deepspeed": "deepspeedai/DeepSpeed/compare/v{}...v{}",
    "diffusers": "huggingface/diffusers/compare/v{}...v{}",
    "lightning": "Lightning-AI/pytorch-lightning/compare/{}...{}",
    "liger-kernel": "linkedin/Liger-Kernel/compare/v{}...v{}",
    "peft": "huggingface/peft/compare/v{}...v{}",
    "pytorch-lightning": "Lightning-AI/pytorch-lightning/compare/{}...{}",
    "torch": "pytorch/pytorch/compare/v{}...v{}",
    "torchmetrics": "Lightning-AI/torchmetrics/compare/v{}...v{}",
    "transformers": "huggingface/transformers/compare/v{}...v{}",
    "trl": "huggingface/trl/compare/v{}...v{}",
    "vllm": "vllm-project/vllm/compare/v{}...v{}",
}
"""Pages of GitHub with the difference of two releases, by the names of their tags."""


@dataclass(frozen=True)
class ReportedChange:
    """A change of release that a report states."""

    change: ReleaseChange
    report: Report
    """Its words decide which of the known changes concern it."""

    @classmethod
    def of(cls, report: Report) -> ReportedChange | None:
        """Return the change of a report: by its words, else by a release that alone has a known one."""
        found = find_change(report.issue) or stated_change(report.issue.versions, report.text)
        return cls(found, report) if found else None

    @property
    def title(self) -> str:
        """What is known of it in one sentence."""
        change = self.change
        if change.is_inferred or not change.old:
            return f"It began with {change.package} {change.new}"
        return f"It began between {change.package} {change.old} and {change.new or 'the newest release'}"

    def sections(self, read_repros: Callable[[], Iterable[Repro]]) -> Iterator[Section]:
        """Yield what is known to have changed between both releases, and where their difference is.

        Args:
            read_repros: reads the catalogue.
        """
        change = self.change
        known = find_known_changes(change, self.report.text)
        found = [repro for repro in read_repros() if _begins(repro, change)]
        texts = [f"{repro.id} {repro.title} ({affected_text(repro.affected)})" for repro in found]
        texts = [*(f"{one.package} {one.release}: {one.text}: {one.fix}" for one in known), *texts][:_MOST_FAILURES]
        if not known:
            texts.insert(0, _stated(change))
        stated = self.report.issue.versions.get(change.package, ())
        if not known and not found and (patch := _later_patch(change, stated)):
            texts.insert(0, f"{change.package} {patch} is a later patch release of the one that fails: try it first")
        yield Section("begins", tuple(texts), most_lines=4)
        if change.package in _SOURCES and _is_near(change):
            link = f"https://github.com/{_SOURCES[change.package].format(change.old, change.new)}"
            yield Section("link", (link,), is_code=True, most_lines=1)

    def bisect_commands(self, script: str) -> Iterator[str]:
        """Yield the command that finds the release between both ends; none between neighbouring releases.

        Args:
            script: the program, or `--from-issue FILE`.
        """
        change = self.change
        if not _is_near(change) or change.is_inferred:  # only one end was seen
            ends = [f"--from {change.old}" if change.old else "", f"--to {change.new}" if change.new else ""]
            yield " ".join(filter(None, [f"repros bisect {script} --package {change.package}", *ends]))


def _is_near(change: ReleaseChange) -> bool:
    return bool(change.old and change.new) and not releases_between(change.package, change.old, change.new)


def _later_patch(change: ReleaseChange, stated: Iterable[str]) -> str:
    """Return the last patch release after a change, `3.4.1` for `3.4.0`; empty if there is none, or the report has it.

    Args:
        change: the change, of which the newer release fails.
        stated: the releases of the package that the report states.
    """
    if not change.new:
        return ""
    newest = max(map(Version, (change.new, *filter(is_version, stated))))
    last = last_release(change.package, ".".join(map(str, Version(change.new).release[:2])))
    return last if is_listed(change.package, last) and Version(last) > newest else ""


def _stated(change: ReleaseChange) -> str:
    """Return both ends of a change, and what they are by."""
    new = change.new or "the newest release"
    if not change.old:
        return f"with {change.package} {new}, as reported"
    if change.is_inferred:
        return f"{change.package} {new}, as reported; {change.old} is the release before: try with it"
    return f"between {change.package} {change.old} and {new}, as reported: stay on the one that works until it is found"


def _begins(repro: Repro, change: ReleaseChange) -> bool:
    """Return whether a documented failure has the newer release and not the older one."""
    ranges = [one.only.specifier for one in repro.affected if one.only and one.only.name == change.package]
    if not change.old or not change.new:
        return False
    return any(
        releases.contains(change.new, prereleases=True) and not releases.contains(change.old, prereleases=True)
        for releases in ranges
    )
