"""The answer to the text of an issue: its error, else its script, else its symptom, with what it states."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from repros.diagnose.issue import Issue, read_issue
from repros.diagnose.issue.symptoms import (
    ReportedSymptom,
    Upgrade,
    find_symptom,
    find_upgrade,
    possible_causes,
    rank_by_words,
)
from repros.model import Repro
from repros.model.affected import affected_text
from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Certainty, Section
from repros.scripts.triage.kind import Document, Input, InputKind
from repros.scripts.triage.script_answer import answer_script
from repros.scripts.triage.script_uses import FailureUses

_MOST_VERSIONS = 8
_MOST_FAILURES = 3
_MOST_CAUSES = 3
_MESSAGE = re.compile(r"(?<![\w.])(?P<message>[A-Za-z_][\w.]*(?:Error|Exception): ?(?=\S)[^`\n]{3,400})")
"""An exception's class and message within a sentence, to the end of its quote or line."""
_NO_SYMPTOM = "It began with another release"
_SCRIPT = "train.py"
"""The program of an issue without a script."""


class ListedFailure(NamedTuple):
    """What a list of the catalogue says of one documented failure."""

    id: str
    title: str
    packages: tuple[str, ...]


def complete_issue(
    answer: Answer,
    document: Document,
    read_failures: Callable[[], Sequence[FailureUses]],
    list_failures: Callable[[], Iterable[ListedFailure]],
    read_repros: Callable[[], Iterable[Repro]],
) -> Answer:
    """Return the answer to an issue.

    Args:
        answer: that to the errors in its text.
        document: the issue.
        read_failures: returns the uses of the documented failures, which only an issue without an error needs.
        list_failures: returns the documented failures, which only an issue without an error needs.
        read_repros: reads the catalogue, which only an issue with a change of release needs.
    """
    issue = read_issue(document.raw.decode("utf-8", "replace"))
    if issue.code and not answer.certainty.is_answer and not issue.failures and not _has_error(answer):
        answer = answer_script("", issue.code.source, read_failures, InputKind.ISSUE)
    if answer.certainty is Certainty.UNKNOWN and not answer.repro_id and not _has_error(answer):
        answer = _by_symptom(answer, issue, list_failures, read_repros)
    commands = [f"repros try --from-issue {shlex.quote(document.name)}"] if issue.code and document.path else []
    return replace(
        answer,
        sections=(*answer.sections, *_stated_section(issue)),
        next=tuple(dict.fromkeys([*commands, *answer.next]))[:MOST_COMMANDS],
    )


def with_messages(given: Input) -> Input | None:
    """Return an issue in which messages within sentences are lines of their own; None if there is none.

    The other words of such a line are left out, so that the numbers of lines stay.
    """
    document = given.documents[0]
    lines = document.raw.decode("utf-8", "replace").split("\n")
    quoted = [_MESSAGE.search(line) for line in lines]
    if not any(quoted):
        return None
    shown = [_unquoted(found) if found else line for found, line in zip(quoted, lines, strict=True)]
    return replace(given, documents=(replace(document, raw="\n".join(shown).encode("utf-8", "replace")),))


def _unquoted(found: re.Match[str]) -> str:
    """Return a message up to the end of the quote that it begins."""
    before = found.string[found.start() - 1 : found.start()]
    end = {"\u201c": "\u201d", "'": "'", '"': '"', "*": "*"}.get(before, "\n")
    stop = found["message"].rfind(f"{end} ") if end != "\n" else -1
    message = found["message"][:stop] if stop > 0 else found["message"]
    return message.rstrip('`*"\u201d ')


def _has_error(answer: Answer) -> bool:
    return any(section.label in {"error", "seen"} for section in answer.sections)


def _by_symptom(
    answer: Answer,
    issue: Issue,
    list_failures: Callable[[], Iterable[ListedFailure]],
    read_repros: Callable[[], Iterable[Repro]],
) -> Answer:
    """Return the answer by what the issue reports: a symptom, and a change of release; else the answer as it is."""
    reported, upgrade = find_symptom(issue), find_upgrade(issue)
    if reported is None and upgrade is None:
        return answer
    sections = [
        *(_reported_sections(reported, issue, list_failures()) if reported else ()),
        *(_upgrade_section(upgrade, read_repros()) if upgrade else ()),
    ]
    title, commands = _NO_SYMPTOM, list[str]()
    if reported:
        title = reported.symptom.title
        commands = [command.replace("{script}", _SCRIPT) for command in reported.symptom.next]
    if upgrade:
        ends = f"--from {upgrade.old} --to {upgrade.new}" if upgrade.old else f"--to {upgrade.new}"
        commands.insert(0, f"repros bisect {_SCRIPT} --package {upgrade.package} {ends}")
    return replace(
        answer,
        title=title,
        certainty=Certainty.POSSIBLE,
        sections=tuple(sections),
        next=tuple(commands)[:MOST_COMMANDS],
    )


def _reported_sections(reported: ReportedSymptom, issue: Issue, listed: Iterable[ListedFailure]) -> Iterator[Section]:
    """Yield the sentence with the symptom, what distinguishes its causes, and the documented failures that show it."""
    symptom = reported.symptom
    named, others = possible_causes(symptom, issue)
    yield Section("reported", (reported.sentence,), most_lines=2)
    yield Section("check", (named[0].check if named and named[0].check else symptom.check,), most_lines=2)
    for cause in (*named, *others)[:_MOST_CAUSES]:
        yield Section("possible", (f"{cause.text}: {cause.fix}",), most_lines=2)
    text = f"{issue.title}\n{issue.seen}".lower()
    named = [one for one in listed if one.id in symptom.ids and _concerns(one, text, issue)]
    order = {id_: at for at, id_ in enumerate(symptom.ids)}
    shown = rank_by_words([(one.id, one.title) for one in sorted(named, key=lambda one: order[one.id])], text)
    if shown:
        label = "near" if symptom.causes else "possible"
        yield Section(label, tuple(f"{id_} {title}" for id_, title in shown[:_MOST_FAILURES]), most_lines=4)


def _concerns(failure: ListedFailure, text: str, issue: Issue) -> bool:
    """Return whether an issue names a library that has the failure; any issue may concern torch."""
    packages = {*failure.packages} - {"torch"}
    return not packages or any(package in text or package in issue.versions for package in packages)


def _upgrade_section(upgrade: Upgrade, repros: Iterable[Repro]) -> Iterator[Section]:
    """Yield the documented failures that the newer release has and the older one, or the one before, has not."""
    between = f"between {upgrade.package} {upgrade.old} and {upgrade.new}"
    between = between if upgrade.old else f"with {upgrade.package} {upgrade.new}"
    found = [repro for repro in repros if _begins(repro, upgrade)]
    texts = [f"{repro.id} {repro.title} ({affected_text(repro.affected)})" for repro in found]
    yield Section("begins", (*texts[:_MOST_FAILURES],) or (f"no documented failure {between}",), most_lines=3)


def _begins(repro: Repro, upgrade: Upgrade) -> bool:
    ranges = [one.only.specifier for one in repro.affected if one.only and one.only.name == upgrade.package]
    if not upgrade.old:
        return any(bound.version == upgrade.new and bound.operator == ">=" for bounds in ranges for bound in bounds)
    return any(
        releases.contains(upgrade.new, prereleases=True) and not releases.contains(upgrade.old, prereleases=True)
        for releases in ranges
    )


def _stated_section(issue: Issue) -> Iterator[Section]:
    versions = [f"{name} {stated[0]}" for name, stated in issue.versions.items()][:_MOST_VERSIONS]
    launcher, ranks = issue.launch.launcher, issue.launch.ranks
    launched = " ".join(filter(None, [f"by {launcher}" if launcher else "", f"on {ranks} ranks" if ranks else ""]))
    gpus = ", ".join(dict.fromkeys(issue.gpus.names))
    if text := "; ".join(filter(None, [", ".join(versions), launched, gpus])):
        yield Section("stated", (text,), most_lines=2)
