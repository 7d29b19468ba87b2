"""`pylock.toml` (PEP 751), as `pip lock`, `uv export` and others write it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError
from packaging.utils import canonicalize_name

from repros.audit.sources.picks import line_of, pick, toml
from repros.audit.subject import AuditError, Pick, Place, Subject


def read(file: Path) -> Subject:
    """Read a lock."""
    data, lines = toml(file)
    try:
        lock = Pylock.from_dict(data)
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise AuditError(f"{file} is no pylock file that can be read ({error}).") from error
    picks: dict[str, list[Pick]] = defaultdict(list)
    at = 0
    for package in lock.packages:
        at = max(at, line_of(lines, rf'^\s*name = ["\']{re.escape(package.name)}["\']', at))
        place = Place(str(file), at)
        marker = str(package.marker or "")
        if package.version is None:
            one = Pick("of its source", place, marker=marker)
        else:
            one = Pick(str(package.version), place, package.version, marker=marker)
        picks[canonicalize_name(package.name)].append(one)
    if lock.requires_python is not None:
        picks["python"].append(pick(lock.requires_python, Place(str(file), line_of(lines, "requires-python"))))
    return Subject(str(file), {name: tuple(found) for name, found in picks.items()}, complete=True)
