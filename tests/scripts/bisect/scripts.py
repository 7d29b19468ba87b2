"""What the tests of `repros bisect SCRIPT` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from repros.engine.environments.index import ReleaseFile
from repros.engine.environments.releases import PackageRelease
from tests.scripts.try_.conftest import Ended

Bisect = Callable[..., Ended]
"""Runs `repros bisect` with these words."""
Publish = Callable[[str, str], None]
"""Publishes a release of the library: its version and its source."""
SCRIPT = "import tinylib\n\ntinylib.run()\n"


def as_file(release: PackageRelease) -> ReleaseFile:
    """Return a release as the index describes it."""
    return ReleaseFile(f"tinylib-{release.version}-py3-none-any.whl", release.date, "", yanked=False)


def shows(report: Any) -> dict[str, str | None]:
    """Return what each release shows, from the report in JSON."""
    return {release["version"]: release["shows"] for release in report["releases"]}
