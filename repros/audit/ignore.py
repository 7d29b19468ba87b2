"""Findings that somebody has decided to live with: with a reason, and only until a day.

[tool.repros.audit]
ignore = [{ id = "RPR-0005", reason = "the teacher is frozen", until = 2027-01-31 }]
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.audit.subject import AuditError
from repros.engine.catalogue import Catalogue

_EXPECTED = 'expected { id = "RPR-0005", reason = "why", until = 2027-01-31 }'


@dataclass(frozen=True)
class Ignore:
    """A decision about one failure."""

    id: str
    reason: str
    until: dt.date
    """The last day on which it holds."""

    def expired(self, today: dt.date) -> bool:
        """Whether it no longer holds."""
        return today > self.until


def settled(ignores: Iterable[Ignore], catalogue: Catalogue) -> dict[str, Ignore]:
    """Return them by id; of two for one failure the one that holds longer.

    Raises:
        UnknownNameError: an id that no failure has.
    """
    return {catalogue.find(one.id).id: one for one in sorted(ignores, key=lambda one: one.until)}


def nearest_pyproject(folder: Path) -> Path | None:
    """Return the `pyproject.toml` of the project that a folder belongs to."""
    candidates = (place / "pyproject.toml" for place in (folder.absolute(), *folder.absolute().parents))
    return next((file for file in candidates if file.is_file()), None)


def from_pyproject(file: Path) -> Sequence[Ignore]:
    """Read the decisions in a project's `[tool.repros.audit]`.

    Raises:
        AuditError: an entry that lacks its reason or its day, or an unknown key.
    """
    try:
        data: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AuditError(f"{file}: cannot be read as TOML ({error}).") from error
    table = data.get("tool", {}).get("repros", {}).get("audit", {})
    if strange := [key for key in table if key != "ignore"]:
        raise AuditError(f"{file}: unknown key {strange[0]!r} in [tool.repros.audit]; expected: ignore.")
    entries = table.get("ignore", [])
    if not isinstance(entries, list):
        raise AuditError(f"{file}: ignore in [tool.repros.audit]; expected a list.")
    return [_entry(file, entry) for entry in entries]


def _entry(file: Path, entry: Any) -> Ignore:
    given = entry if isinstance(entry, dict) else {}
    id_, reason, until = given.get("id"), given.get("reason"), given.get("until")
    fitting = (
        given.keys() == {"id", "reason", "until"}
        and isinstance(id_, str)
        and isinstance(reason, str)
        and reason.strip()
        and type(until) is dt.date
    )
    if not fitting:
        raise AuditError(f"{file}: ignore = {entry!r} in [tool.repros.audit]; {_EXPECTED}.")
    assert isinstance(id_, str)
    assert isinstance(reason, str)
    assert isinstance(until, dt.date)
    return Ignore(id_, reason, until)
