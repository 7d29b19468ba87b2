"""`uv.lock`: every release exactly, several of one package where markers part the ways."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from packaging.utils import canonicalize_name

from repros.audit.sources.picks import exact, line_of, toml
from repros.audit.subject import AuditError, Pick, Place, Subject


def read(file: Path) -> Subject:
    """Read a lock."""
    data, lines = toml(file)
    packages = data.get("package", [])
    if "version" not in data or not isinstance(packages, list):
        raise AuditError(f"{file} is no lock of uv; expected 'version' and tables [[package]].")
    picks: dict[str, list[Pick]] = defaultdict(list)
    at = 0
    for package in packages:
        name = str(package.get("name", ""))
        # In the order of the file, so that two releases of one package have two lines.
        at = max(at, line_of(lines, rf'^name = "{re.escape(name)}"', at))
        place = Place(str(file), at)
        ways = " or ".join(package.get("resolution-markers", []))
        one = exact(package["version"], place, ways) if "version" in package else Pick("of its source", place)
        picks[canonicalize_name(name)].append(one)
    return Subject(str(file), {name: tuple(found) for name, found in picks.items()}, complete=True)
