"""The table of the message families in `docs/messages.md`: what each says, its causes, and how it was tested."""

from __future__ import annotations

from collections.abc import Iterable

from repros.diagnose.messages import MessageFamily
from tests.diagnose.messages.family_logs import FamilyLog


def families_table(families: Iterable[MessageFamily], logs: Iterable[FamilyLog]) -> str:
    """Return one row for each family, by area.

    Args:
        families: the families.
        logs: the public messages that test them.
    """
    tested = list(logs)
    head = "| Area | The words say | To change | Causes, with public threads | Public messages | Not written from |\n"
    rows = [f"{head}| --- | --- | --- | --- | --- | --- |\n"]
    for family in sorted(families, key=lambda family: (family.area, family.title)):
        own = [log for log in tested if log.family == family.name]
        unseen = sum(not log.written_from for log in own)
        causes = "<br>".join(f"{_cell(cause.text)} ({_threads(cause.threads)})" for cause in family.causes)
        area = family.area.replace("_", " ")
        rows.append(f"| {area} | {_cell(family.title)} | {family.fault} | {causes} | {len(own)} | {unseen} |\n")
    return "".join(rows)


def _threads(addresses: Iterable[str]) -> str:
    return ", ".join(f"[{number}]({address})" for number, address in enumerate(addresses, 1))


def _cell(text: str) -> str:
    """Return a text for a cell: Markdown's marks are quoted, and the words of a message are italic."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("{", "*").replace("}", "*")
