"""The answer to the text of an issue: its error, else its script, with what it states."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from repros.diagnose.issue import Issue, read_issue
from repros.scripts.triage.answer import MOST_COMMANDS, Answer, Section
from repros.scripts.triage.kind import Document, InputKind
from repros.scripts.triage.script_answer import answer_script
from repros.scripts.triage.script_uses import FailureUses

_MOST_VERSIONS = 8


def complete_issue(answer: Answer, document: Document, read_failures: Callable[[], Sequence[FailureUses]]) -> Answer:
    """Return the answer to an issue.

    Args:
        answer: that to the errors in its text.
        document: the issue.
        read_failures: returns the uses of the documented failures, which only an issue without an error needs.
    """
    issue = read_issue(document.raw.decode("utf-8", "replace"))
    if issue.code and not answer.certainty.is_answer and not issue.failures:
        answer = answer_script("", issue.code.source, read_failures, InputKind.ISSUE)
    commands = [f"repros try --from-issue {shlex.quote(document.name)}"] if issue.code and document.path else []
    return replace(
        answer,
        sections=(*answer.sections, *_stated_section(issue)),
        next=tuple(dict.fromkeys([*commands, *answer.next]))[:MOST_COMMANDS],
    )


def _stated_section(issue: Issue) -> Iterator[Section]:
    versions = [f"{name} {stated[0]}" for name, stated in issue.versions.items()][:_MOST_VERSIONS]
    launcher, ranks = issue.launch.launcher, issue.launch.ranks
    launched = " ".join(filter(None, [f"by {launcher}" if launcher else "", f"on {ranks} ranks" if ranks else ""]))
    gpus = ", ".join(dict.fromkeys(issue.gpus.names))
    if text := "; ".join(filter(None, [", ".join(versions), launched, gpus])):
        yield Section("stated", (text,), most_lines=2)
