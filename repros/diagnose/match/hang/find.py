"""Find the ranks that a hang waits for, from dumps or from a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from repros.diagnose.match.hang.calls import CollectiveCall, Dump
from repros.diagnose.match.hang.disagree import DisagreementKind, RankDisagreement, find_disagreements
from repros.diagnose.match.hang.groups import Group, find_groups
from repros.diagnose.match.hang.log_groups import find_log_disagreements
from repros.diagnose.match.hang.waits import Unanswered, find_circle, find_edges, find_roots, find_unanswered
from repros.diagnose.match.hang.watchdog import WatchdogLines, WatchdogReport

_MOST_NOTES = 3
"""Of one kind."""


@dataclass(frozen=True)
class Hang:
    """A hang, as dumps or a log show it."""

    is_from_dumps: bool
    disagreements: tuple[RankDisagreement, ...] = ()
    """The most relevant first: that of the ranks that the others wait for, or else the earliest."""
    unanswered: tuple[Unanswered, ...] = ()
    roots: tuple[int, ...] = ()
    """The ranks that the others wait for, directly or through other ranks."""
    circle: tuple[int, ...] = ()
    """Without such a rank: ranks that wait for each other."""
    last: tuple[tuple[int, CollectiveCall | None], ...] = ()
    """For each rank, the call in which it waits, or else its last call; None if its dump has no call."""
    reports: tuple[WatchdogReport, ...] = ()
    notes: tuple[str, ...] = ()
    """A sentence for each gap in the evidence."""

    @property
    def has_waiting_ranks(self) -> bool:
        """Whether a rank waits."""
        return bool(self.disagreements or self.unanswered)


def find_hang(dumps: Sequence[Dump]) -> Hang:
    """Return the hang in the dumps of a program's ranks."""
    groups = find_groups(dumps)
    unanswered = tuple(wait for group in groups for wait in find_unanswered(group))
    disagreements = tuple(disagreement for group in groups for disagreement in find_disagreements(group))
    edges = find_edges(groups, unanswered)
    roots = find_roots(edges, disagreements)
    return Hang(
        is_from_dumps=True,
        disagreements=tuple(sorted(disagreements, key=lambda one: _order(one, roots))),
        unanswered=unanswered,
        roots=roots,
        circle=() if roots else find_circle(edges),
        last=tuple((dump.rank, _last_call(dump)) for dump in dumps),
        notes=tuple(_notes(dumps, groups, disagreements)),
    )


def find_log_hang(lines: WatchdogLines) -> Hang:
    """Return the hang in the watchdog's lines of a log."""
    disagreements = find_log_disagreements(lines)
    roots = sorted({rank for disagreement in disagreements for rank in disagreement.culprits})
    notes = []
    if any(not report.is_global for report in lines.reports):
        notes.append("The log has only ranks within groups; with a single group they are the global ranks.")
    if any(not report.group for report in lines.reports):
        notes.append("The log does not name the group of every call; calls of two groups may have the same number.")
    return Hang(
        is_from_dumps=False,
        disagreements=tuple(sorted(disagreements, key=lambda one: _order(one, roots))),
        roots=tuple(roots),
        reports=lines.reports,
        notes=tuple(notes),
    )


def _order(disagreement: RankDisagreement, roots: Iterable[int]) -> tuple[object, ...]:
    """Return the sort key: disagreements that show a cause first, then those with most waiting ranks."""
    order = (
        DisagreementKind.OTHER_CALL,
        DisagreementKind.MISSING,
        DisagreementKind.UNFINISHED,
        DisagreementKind.AHEAD,
        DisagreementKind.ALL_WAIT,
    )
    named = set(roots) & set(disagreement.culprits)
    return (order.index(disagreement.kind), -len(named), -len(disagreement.waiting), disagreement.since_ns)


def _last_call(dump: Dump) -> CollectiveCall | None:
    """Return the first call in which a rank waits, or else its last call."""
    unfinished = (call for call in dump.calls if not call.is_finished)
    return next(unfinished, dump.calls[-1] if dump.calls else None)


def _notes(dumps: Sequence[Dump], groups: Sequence[Group], disagreements: Sequence[RankDisagreement]) -> Iterable[str]:
    """Yield the gaps in the evidence."""
    absent = sorted({rank for group in groups for rank in group.absent})
    if absent:
        yield (
            f"There is no dump of {ranks_text(absent)}, so the calls there are unknown. A process leaves no dump if it "
            "died, or if its watchdog could not write one."
        )
    dropped = [dump for dump in dumps if dump.overwritten]
    if dropped:
        most = max(dump.overwritten for dump in dropped)
        one, several = "The ring buffer of {} no longer has its", "The ring buffers of {} no longer have their"
        buffers = one if len(dropped) == 1 else several
        yield (
            f"{buffers.format(ranks_text(dump.rank for dump in dropped))} first calls (at most {most:,}); a larger "
            "TORCH_NCCL_TRACE_BUFFER_SIZE keeps more."
        )
    for disagreement in [one for one in disagreements if one.unknown][:_MOST_NOTES]:
        dump = "its dump" if len(disagreement.unknown) == 1 else "their dumps"
        yield (
            f"Whether {ranks_text(disagreement.unknown)} called {disagreement.calls[0][0].partition(' ')[0]} number "
            f"{disagreement.number} of {disagreement.group_text} is not in {dump}."
        )
    guessed = [group.text for group in groups if not group.is_stated]
    if guessed:
        yield (
            f"No dump states the ranks of {' and '.join(guessed[:3])}; assumed are "
            + ("those with a dump or a call in it." if len(guessed) == 1 else "those with a call in each.")
        )


def ranks_text(ranks: Iterable[int]) -> str:
    """Return `rank 3`, or `ranks 0-7, 9`."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][-1] + 1:
            spans[-1][1:] = [rank]
        else:
            spans.append([rank])
    parts = [
        str(span[0]) if len(span) == 1 else f"{span[0]}{'-' if span[1] - span[0] > 1 else ', '}{span[1]}"
        for span in spans
    ]
    return f"rank{'' if len(parts) == 1 and len(spans[0]) == 1 else 's'} {', '.join(parts)}"
