"""A bisection as a JSON object, and the files in which bisections are kept as evidence."""

from __future__ import annotations

import datetime as dt
import platform
from pathlib import Path
from typing import Any

from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.settings import EVIDENCE
from repros.scripts.bisect.bisection import Bisection
from repros.scripts.bisect.examine import MAX_RUNS, NEEDED_RUNS
from repros.scripts.bisect.search import Boundary
from repros.text.control import dump_json

SCHEMA = 1
"""Raised when a field changes its name or its meaning."""


def bisection_record(bisection: Bisection) -> dict[str, Any]:
    """Return the object: the question, every answer, both boundaries; with today's date and this platform."""
    question, boundaries, answers = bisection.question, bisection.boundaries, bisection.answers
    spec = question.spec
    return {
        "schema": SCHEMA,
        "repro": spec.repro.id,
        "variant": spec.variant.name,
        "strategy": spec.strategy,
        "device": spec.device.value,
        "stack": question.stack.name,
        "package": question.package,
        "platform": platform.platform(),
        "date": str(dt.datetime.now().astimezone().date()),
        "confirmed_by": [NEEDED_RUNS, MAX_RUNS],
        "start": str(question.start.version),
        "candidates": {str(release.version): str(release.date) for release in question.releases},
        "answers": {
            answer.version: {"answer": answer.answer.value, "why": answer.why, "versions": answer.versions}
            for _, answer in sorted(answers.items())
        },
        "begins": _boundary_record(bisection, boundaries.begins),
        "ends": _boundary_record(bisection, boundaries.ends),
    }


def _boundary_record(bisection: Bisection, boundary: Boundary | None) -> dict[str, Any] | None:
    if boundary is None:
        return None
    versions = [str(release.version) for release in bisection.question.releases]
    return {
        "affected": versions[boundary.affected],
        "free": None if boundary.free is None else versions[boundary.free],
        "unknown": [versions[number] for number in boundary.unknown],
    }


def keep(bisection: Bisection) -> Path:
    """Write a bisection into the evidence of its catalogue, and return the file.

    Raises:
        ReprosError: the file cannot be written.
    """
    repro, question = bisection.question.spec.repro, bisection.question
    file = _folder(repro) / f"{repro.id}-{question.package}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{dump_json(bisection_record(bisection), indent=1)}\n", encoding="utf-8")
    except OSError as error:
        raise ReprosError(f"{file} cannot be written ({error.strerror}); keep the answer with --json.") from error
    return file


def kept_record(repro: Repro, package: str) -> Path | None:
    """Return the file of a bisection of this package that was kept, if there is one."""
    return next(iter(sorted(_folder(repro).glob(f"{repro.id}-{package}*.json"))), None)


def _folder(repro: Repro) -> Path:
    """Return the folder for a repro's bisections: that of the package, or that of its private catalogue."""
    private = repro.origin.folder
    return (EVIDENCE if private is None else private / "evidence") / "bisections"
