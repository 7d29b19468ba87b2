"""Write the releases of the packages whose changes a report may state: `python -m tools.measure.release_lists`.

The package index that pip or uv is configured to use is asked once for each package.
"""

from __future__ import annotations

from packaging.version import Version

from repros.diagnose.messages.release_lists import FILE, PACKAGES
from repros.engine.environments.index import version_of
from repros.engine.environments.releases import fetch_files
from repros.text.wording import wrap

_COLUMNS = 110
_OLDEST = Version("1.10")
"""Of torch, in 2021: older releases have no environment here."""
_FIRST_YEAR = 2000
"""Releases of lightning that were named by their date, and are no predecessors of 2.0."""
_HEAD = """\
# The final releases of packages whose changes reports state, oldest first: python -m tools.measure.release_lists

"""


def main() -> None:
    """Write the file anew."""
    tables = []
    for package in PACKAGES:
        versions = {version_of(file.name) for file in fetch_files(package) if not file.yanked}
        found = sorted(version for version in versions if version and is_listed(package, version))
        lines = "\n".join(wrap(" ".join(map(str, found)), _COLUMNS))
        tables.append(f'{package} = """\n{lines}\n"""\n')
    FILE.write_text(_HEAD + "\n".join(tables), encoding="utf-8")


def is_listed(package: str, version: Version) -> bool:
    """Return whether a version is a final release, and not older than what reports are about."""
    is_left_out = version.major >= _FIRST_YEAR or (package == "torch" and version < _OLDEST)
    return not (version.is_prerelease or version.local or is_left_out)


if __name__ == "__main__":
    main()
