"""The upstream threads of a failure by relation, and the kind of failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from repros.model.kinds import FailureKind

if TYPE_CHECKING:
    from repros.model import Repro, Upstream

_LABELS = {
    "reports": "reported in",
    "introduced_by": "introduced by",
    "fixed_by": "fixed by",
    "unreleased_fix": "fixed, but in no release yet, by",
    "related": "related to",
}
NO_REPORT = "discovered by this project, unreported"


def thread_groups(upstream: Upstream) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a label and its links for each group of threads; without reports, first a label without links."""
    if not upstream.reports:
        yield NO_REPORT, ()
    for field, label in _LABELS.items():
        links: tuple[str, ...] = getattr(upstream, field)
        if links:
            yield label, links


def kind_text(kind: FailureKind, documented: str | None) -> str:
    """Return the kind of a failure, with the URL of its documentation."""
    return kind.value if documented is None else f"{kind}, documented at {documented}"


def kind_note(repro: Repro) -> str:
    """Return ` (by design)` for a failure that is no bug, and nothing for a bug."""
    return "" if repro.kind is FailureKind.BUG else f" ({repro.kind})"
