"""The releases of a package with which one failure was measured, read without the evidence of all others."""

from __future__ import annotations

import re
from typing import NamedTuple

from repros.engine.evidence.files import read_verdicts
from repros.model import Repro
from repros.model.settings import EVIDENCE


class SeenReleases(NamedTuple):
    """Releases of one package, in their order."""

    package: str
    failing: tuple[str, ...]
    clean: tuple[str, ...]
    """Without those that fail on another device or with another strategy."""


def seen_releases(repro: Repro) -> SeenReleases:
    """Return the releases of the first package of a failure on which its failing variant was measured."""
    package = repro.packages[0]
    folder = EVIDENCE if repro.origin.folder is None else repro.origin.folder / "evidence"
    failing, clean = set[str](), set[str]()
    for file in sorted(folder.glob(f"*/{repro.id}.toml")):
        for versions, verdict in read_verdicts(file, "failing"):
            if version := versions.get(package):
                failing |= {version} if verdict.shows_failure else set()
                clean |= {version} if verdict.ran_clean else set()
    return SeenReleases(package, *(tuple(sorted(found, key=_release)) for found in (failing, clean - failing)))


def _release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
