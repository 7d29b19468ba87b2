"""Ignores: failures that a project accepts, each with a reason and an expiry date.

[tool.repros.audit]
ignore = [{ id = "RPR-0005", reason = "the teacher is frozen", until = 2027-01-31 }]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.advise.audit.sources.parsing import expect, quote, read_toml
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import may_decide

_TABLE = ("tool", "repros", "audit")
_EXPECTED = 'expected { id = "RPR-0005", reason = "why", until = 2027-01-31 }'


@dataclass(frozen=True)
class Ignore:
    """The decision to accept one failure for a time."""

    id: str
    reason: str
    until: dt.date
    """The last day on which the failure is ignored."""

    def is_expired(self, today: dt.date) -> bool:
        """Return whether the last day is over."""
        return today > self.until


def index_ignores(ignores: Iterable[Ignore], catalogue: Catalogue) -> dict[str, Ignore]:
    """Return the ignores by repro id; of two for one repro, the one that expires later.

    Raises:
        UnknownNameError: an id that no repro has.
    """
    return {catalogue.find(ignore.id).id: ignore for ignore in sorted(ignores, key=lambda ignore: ignore.until)}


def find_pyproject(folder: Path) -> Path | None:
    """Return the nearest `pyproject.toml` in a folder or its parents; None if it belongs to another user."""
    folder = folder.absolute()
    candidates = (parent / "pyproject.toml" for parent in (folder, *folder.parents))
    nearest = next((file for file in candidates if file.is_file()), None)
    return nearest if nearest is not None and may_decide(nearest, folder) else None


def read_ignores(file: Path) -> Sequence[Ignore]:
    """Parse the ignores in a `pyproject.toml`, table `[tool.repros.audit]`.

    Raises:
        ReprosError: an entry without its reason or its last day, or an unknown key.
    """
    try:
        data, _ = read_toml(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ReprosError(f"{file}: cannot be read as TOML ({error}).") from error
    table = data
    for number, key in enumerate(_TABLE, 1):
        table = expect(file, f"[{'.'.join(_TABLE[:number])}]", table.get(key, {}), dict)
    if unknown := [key for key in table if key != "ignore"]:
        raise ReprosError(f"{file}: unknown key {quote(unknown[0])} in [tool.repros.audit]; expected: ignore.")
    entries = table.get("ignore", [])
    if not isinstance(entries, list):
        raise ReprosError(f"{file}: ignore in [tool.repros.audit]; expected a list.")
    return [_parse_ignore(file, entry) for entry in entries]


def _parse_ignore(file: Path, entry: Any) -> Ignore:
    table = entry if isinstance(entry, dict) else {}
    id_, reason, until = table.get("id"), table.get("reason"), table.get("until")
    complete = (
        table.keys() == {"id", "reason", "until"}
        and isinstance(id_, str)
        and isinstance(reason, str)
        and reason.strip()
        and type(until) is dt.date
    )
    if not complete:
        raise ReprosError(f"{file}: ignore = {quote(str(entry))} in [tool.repros.audit]; {_EXPECTED}.")
    assert isinstance(id_, str)
    assert isinstance(reason, str)
    assert isinstance(until, dt.date)
    return Ignore(id_, reason, until)
