"""The releases of a package with which one failure was measured.

It reads the few files of the failure itself: the import of `repros.engine.evidence` takes as long as a whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from repros.model import Repro
from repros.model.settings import EVIDENCE

FAILING = frozenset({"reproduced", "regressed", "unfixed"})
"""The verdicts that show a failure."""
CLEAN = frozenset({"clean", "gone"})
"""The verdicts of a run to the end."""


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
        for version, verdict in _measured(file, package):
            failing |= {version} if verdict in FAILING else set()
            clean |= {version} if verdict in CLEAN else set()
    ordered = sorted(failing | clean, key=_release)
    return SeenReleases(package, tuple(_spans(ordered, failing)), tuple(_spans(ordered, clean - failing)))


def _measured(file: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield the release of a package and the verdict of the failing variant of each measured unit; none of damage."""
    import tomllib  # noqa: PLC0415 - few answers name releases

    try:
        for strategies in tomllib.loads(file.read_text(encoding="utf-8")).values():
            for table in strategies.values():
                if package in table["versions"] and "failing" in table["seen"]:
                    yield table["versions"][package], table["seen"]["failing"]["verdict"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return  # `repros matrix` reports it; an answer does without


def _spans(ordered: Sequence[str], chosen: Collection[str]) -> Iterator[str]:
    """Yield the first and the last of each run of chosen releases."""
    for is_chosen, group in groupby(ordered, key=chosen.__contains__):
        releases = list(group)
        if is_chosen:
            yield releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
