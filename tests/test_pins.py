"""What continuous integration installs itself is pinned."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_nox_is_pinned_to_one_release() -> None:
    files = [ROOT / ".ci/run", *sorted((ROOT / ".github/workflows").glob("*.yml"))]
    found = [line.strip() for file in files for line in file.read_text("utf-8").splitlines() if "nox[uv]" in line]
    assert len(found) >= 2
    releases = {re.search(r"nox\[uv\]==([\d.]+)", line) for line in found}
    assert None not in releases, found
    assert len({release[1] for release in releases if release}) == 1
