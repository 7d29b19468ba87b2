"""Find the ranks that a hang waits for, from dumps or from a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from repros.diagnose.match.hang.calls import CollectiveCall, Dump
from repros.diagnose.match.hang.disagree import (
    DisagreementKind,
    RankDisagreement,
    find_disagreements,
    find_mismatch,
)
from repros.diagnose.match.hang.groups import Group, find_groups
from repros.diagnose.match.hang.log_groups import find_log_disagreements
from repros.diagnose.match.hang.waits import (
    Unanswered,
    find_circle,
    find_edges,
    find_explained,
    find_opposite,
    find_roots,
    find_unanswered,
    is_unclear,
)
from repros.diagnose.match.hang.watchdog import WatchdogLines, WatchdogReport

_MOST_NOTES = 3
"""Of one kind."""
_OLD_NS = 3_600 * 10**9
"""Nanoseconds between the last calls of two ranks, beyond their timeout, of which a note tells: an hour."""


@dataclass(frozen=True)
class Hang:
    """A hang, as dumps or a log show it."""

    is_from_dumps: bool
    disagreements: tuple[RankDisagreement, ...] = ()
    """The most relevant first: that of the ranks that the others wait for, or else the earliest."""
    unanswered: tuple[Unanswered, ...] = ()
    roots: tuple[int, ...] = ()
    """The ranks that the others wait for, directly or through other ranks."""
    suspects: tuple[int, ...] = ()
    """Ranks without a dump, or without a call in it, that all others wait for, directly or through other ranks."""
    circle: tuple[int, ...] = ()
    """Without such a rank: ranks that wait for each other."""
    opposite: tuple[str, ...] = ()
    """The two groups that the ranks of the circle called in opposite order, if that is why they wait."""
    mismatches: tuple[RankDisagreement, ...] = ()
    """Of each group the first collective that the ranks completed although they called different ones."""
    last: tuple[tuple[int, CollectiveCall | None], ...] = ()
    """For each rank, the call in which it waits, or else its last call; None if its dump has no call."""
    reports: tuple[WatchdogReport, ...] = ()
    notes: tuple[str, ...] = ()
    """A sentence for each gap in the evidence."""

    @property
    def has_waiting_ranks(self) -> bool:
        """Whether a rank waits."""
        return bool(self.disagreements or self.unanswered)

    @property
    def has_findings(self) -> bool:
        """Whether a rank waits, or ranks completed different calls."""
        return self.has_waiting_ranks or bool(self.mismatches)


def find_hang(dumps: Sequence[Dump]) -> Hang:
    """Return the hang in the dumps of a program's ranks; of those that could not be read a note tells."""
    problems = [dump.problem for dump in dumps if dump.problem]
    dumps = [dump for dump in dumps if not dump.problem]
    groups = find_groups(dumps)
    unanswered = tuple(wait for group in groups for wait in find_unanswered(group))
    disagreements = tuple(disagreement for group in groups for disagreement in find_disagreements(group))
    edges = find_edges(groups, unanswered)
    unclear = {rank for group in groups for rank in group.dumps if is_unclear(group, rank)}
    readable = {dump.rank for dump in dumps} - unclear
    named = find_roots(edges, disagreements)
    roots = tuple(rank for rank in named if rank in readable)
    # Of many ranks without a dump nothing follows: somebody has passed the dumps of a few.
    explained = find_explained(groups, roots)
    suspects = tuple(rank for rank in named if rank not in readable and rank not in explained)
    suspects = suspects if len(suspects) < len(readable) else ()
    order = _opposite_order(groups, disagreements) if not (named or unanswered) else None
    return Hang(
        is_from_dumps=True,
        disagreements=tuple(sorted(disagreements, key=lambda one: _order(one, roots))),
        unanswered=unanswered,
        roots=roots,
        suspects=suspects,
        circle=order[2] if order else () if named else find_circle(edges),
        opposite=(order[0].text, order[1].text) if order else (),
        mismatches=tuple(filter(None, map(find_mismatch, groups))),
        last=tuple((dump.rank, _last_call(dump)) for dump in dumps),
        notes=(*problems, *_notes(dumps, groups, disagreements), *_doubts(dumps)),
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


def _opposite_order(
    groups: Sequence[Group], disagreements: Iterable[RankDisagreement]
) -> tuple[Group, Group, tuple[int, int]] | None:
    """Return the groups called in opposite order, where all ranks wait and nothing else explains it."""
    all_wait = all(disagreement.kind is DisagreementKind.ALL_WAIT for disagreement in disagreements)
    return find_opposite(groups) if all_wait else None


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
    lost = {rank: numbers for group in groups for rank in group.dumps if (numbers := group.lost(rank))}
    if lost:
        first = min(numbers.start for numbers in lost.values())
        yield (
            f"The first unfinished calls, from number {first} on, are among those that {ranks_text(lost)} no longer "
            f"{'has' if len(lost) == 1 else 'have'}: the ranks may differ there."
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


def _doubts(dumps: Sequence[Dump]) -> Iterable[str]:
    """Yield the reasons to doubt that the dumps are those of one hang, each of the rank in its file's name."""
    for dump in [dump for dump in dumps if dump.written_as is not None][:_MOST_NOTES]:
        yield (
            f"{dump.file} is named as that of rank {dump.rank}, but has the sends and receives of rank "
            f"{dump.written_as}: rename the file if it is wrong."
        )
    newest = max((dump.newest_ns for dump in dumps), default=0)
    longest = max((call.timeout_ms for dump in dumps for call in dump.calls[-1:]), default=0) * 1_000_000
    old = [dump for dump in dumps if 0 < dump.newest_ns < newest - max(2 * longest, _OLD_NS)]
    if old:
        hours = (newest - min(dump.newest_ns for dump in old)) / 3_600e9
        yield (
            f"The last call of {ranks_text(dump.rank for dump in old)} is up to {hours:.0f} hours older than that of "
            "the others: its dump may be that of an earlier run."
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
