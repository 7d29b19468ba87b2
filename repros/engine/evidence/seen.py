"""The releases of a package with which one failure was measured, read without the evidence of all others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from repros.engine.evidence.files import read_verdicts
from repros.model import Repro
from repros.model.settings import EVIDENCE


class SeenReleases(NamedTuple):
    """Spans of releases of one package, in their order: `2.0.1 to 2.4.1`, `2.6.0`."""

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
    ordered = sorted(failing | clean, key=_release)
    return SeenReleases(package, tuple(_spans(ordered, failing)), tuple(_spans(ordered, clean - failing)))


def _spans(ordered: Sequence[str], chosen: Collection[str]) -> Iterator[str]:
    """Yield the first and the last of each run of chosen releases."""
    for is_chosen, group in groupby(ordered, key=chosen.__contains__):
        releases = list(group)
        if is_chosen:
            yield releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
