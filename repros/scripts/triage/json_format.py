"""An answer of `repros triage` as JSON, a public format."""

from __future__ import annotations

from typing import Any

from repros.scripts.triage.answer import Answer

SCHEMA = 1
"""Incremented when a key is renamed or removed, or its meaning changes."""


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as an object for JSON."""
    sections: dict[str, list[str]] = {}
    for section in answer.sections:
        sections.setdefault(section.label, []).extend(section.bodies)
    return {
        "schema": SCHEMA,
        "kind": answer.kind.value,
        "title": answer.title,
        "certainty": answer.certainty.value,
        "id": answer.repro_id or None,
        "sections": sections,
        "next": list(answer.next),
        "notes": list(answer.notes),
    }
