"""What releases are known to have changed: `known_changes.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from repros.diagnose.issue.changes import ReleaseChange
from repros.diagnose.messages.release_lists import release_before
from repros.model.cache.snapshot import remember

FILE = Path(__file__).with_name("known_changes.toml")


@dataclass(frozen=True)
class KnownChange:
    """What one release changed."""

    package: str
    """Its canonical name."""
    release: str
    """The first release with it."""
    words: tuple[str, ...]
    """Expressions, of which a report about it has one."""
    text: str
    """What changed."""
    fix: str
    """What to do."""
    source: str
    """What says so: a thread, a guide, or files of releases that were compared."""
    until: str = ""
    """The first release without it; empty if it stays."""


@cache
def load_known_changes() -> Sequence[KnownChange]:
    """Return all known changes."""
    return remember("known-changes", [FILE, __file__], _read)


def _read() -> Sequence[KnownChange]:
    import tomllib  # noqa: PLC0415 - only what has changed is read

    tables = tomllib.loads(FILE.read_text("utf-8")).values()
    return [KnownChange(**{**table, "words": tuple(table["words"])}) for table in tables]


def find_known_changes(change: ReleaseChange, text: str) -> list[KnownChange]:
    """Return what is known to have changed between two releases and concerns a text.

    Args:
        change: the change that a report states.
        text: the report.
    """
    return [one for one in load_known_changes() if _is_between(one, change) and _has(text, one.words)]


def stated_change(stated: Mapping[str, tuple[str, ...]], text: str) -> ReleaseChange | None:
    """Return a change that only the releases between it and its end have, if an environment has one of these.

    Args:
        stated: the releases of the environment, by package.
        text: the report, which is about the change.
    """
    for known in load_known_changes():
        versions = stated.get(known.package, ())
        is_within = any(
            Version(known.release) <= Version(one) < Version(known.until) for one in versions if known.until
        )
        if is_within and _has(text, known.words):
            old = release_before(known.package, known.release)
            return ReleaseChange(known.package, old, known.release, is_inferred=True)
    return None


def _is_between(known: KnownChange, change: ReleaseChange) -> bool:
    release = Version(known.release)
    is_after = not change.old or release > Version(change.old)
    is_before = not change.new or release <= Version(change.new)
    return known.package == change.package and is_after and is_before


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(re.search(word, text, re.IGNORECASE) for word in words)
