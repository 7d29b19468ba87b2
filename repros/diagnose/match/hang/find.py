"""The whole answer about a hang, from dumps and from a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from repros.diagnose.match.hang.calls import Call, Dump
from repros.diagnose.match.hang.disagree import Disagreement, Kind, find_disagreements
from repros.diagnose.match.hang.groups import Group, find_groups
from repros.diagnose.match.hang.log_groups import find_log_disagreements
from repros.diagnose.match.hang.waits import Unanswered, find_circle, find_edges, find_roots, find_unanswered
from repros.diagnose.match.hang.watchdog import Report, WatchdogLines

_MOST_NOTES = 3
"""Of one kind."""


@dataclass(frozen=True)
class Hang:
    """What dumps, or a log, say about a hang."""

    is_from_dumps: bool
    disagreements: tuple[Disagreement, ...] = ()
    """The one to look at first is the first: the ranks in it hold the others up, or else it began first."""
    unanswered: tuple[Unanswered, ...] = ()
    roots: tuple[int, ...] = ()
    """The ranks that all others wait for, in the end."""
    circle: tuple[int, ...] = ()
    """If there is no such rank: ranks that wait for each other."""
    last: tuple[tuple[int, Call | None], ...] = ()
    """Each rank's call in which it waits, or else its last one; None if its dump has none."""
    reports: tuple[Report, ...] = ()
    """What the watchdogs of a log's ranks have written."""
    notes: tuple[str, ...] = ()
    """A sentence for each thing that the evidence cannot tell."""

    @property
    def is_seen(self) -> bool:
        """Whether some rank waits."""
        return bool(self.disagreements or self.unanswered)


def find_hang(dumps: Sequence[Dump]) -> Hang:
    """Return what the dumps of a program's ranks say together."""
    groups = find_groups(dumps)
    unanswered = tuple(wait for group in groups for wait in find_unanswered(group))
    disagreements = tuple(found for group in groups for found in find_disagreements(group))
    edges = find_edges(groups, unanswered)
    roots = find_roots(edges, disagreements)
    return Hang(
        is_from_dumps=True,
        disagreements=tuple(sorted(disagreements, key=lambda found: _order(found, roots))),
        unanswered=unanswered,
        roots=roots,
        circle=() if roots else find_circle(edges),
        last=tuple((dump.rank, _last_call(dump)) for dump in dumps),
        notes=tuple(_notes(dumps, groups, disagreements)),
    )


def find_log_hang(lines: WatchdogLines) -> Hang:
    """Return what the watchdog's lines in a log say together."""
    disagreements = find_log_disagreements(lines)
    roots = sorted({rank for found in disagreements for rank in found.culprits})
    notes = []
    if any(not report.is_global for report in lines.reports):
        notes.append("The log has the ranks within their groups alone; they are the global ones if there is one group.")
    if any(not report.group for report in lines.reports):
        notes.append("The log does not name the groups of all calls; calls of two groups may have one number.")
    return Hang(
        is_from_dumps=False,
        disagreements=tuple(sorted(disagreements, key=lambda found: _order(found, roots))),
        roots=tuple(roots),
        reports=lines.reports,
        notes=tuple(notes),
    )


def _order(found: Disagreement, roots: Iterable[int]) -> tuple[object, ...]:
    """Return what sorts disagreements: those that tell a cause first, of them the one in which most ranks wait."""
    order = (Kind.OTHER_CALL, Kind.MISSING, Kind.UNFINISHED, Kind.AHEAD, Kind.ALL_WAIT)
    named = set(roots) & set(found.culprits)
    return (order.index(found.kind), -len(named), -len(found.waiting), found.since_ns)


def _last_call(dump: Dump) -> Call | None:
    """Return the first call that a rank waits in; of a rank that waits in none, its last one."""
    unfinished = (call for call in dump.calls if not call.is_finished)
    return next(unfinished, dump.calls[-1] if dump.calls else None)


def _notes(dumps: Sequence[Dump], groups: Sequence[Group], disagreements: Sequence[Disagreement]) -> Iterable[str]:
    """Yield what the dumps cannot tell."""
    absent = sorted({rank for group in groups for rank in group.absent})
    if absent:
        yield (
            f"There is no dump of {ranks_text(absent)}, so what it called is not known. A process that died, or that "
            "hangs where its watchdog cannot write, leaves none."
        )
    dropped = [dump for dump in dumps if dump.overwritten]
    if dropped:
        most = max(dump.overwritten for dump in dropped)
        one, several = "The ring buffer of {} no longer has its", "The ring buffers of {} no longer have their"
        buffers = one if len(dropped) == 1 else several
        yield (
            f"{buffers.format(ranks_text(dump.rank for dump in dropped))} first calls, {most:,} at most; what happened "
            "there is not known, and TORCH_NCCL_TRACE_BUFFER_SIZE keeps more."
        )
    for found in [found for found in disagreements if found.unknown][:_MOST_NOTES]:
        whose = "its dump" if len(found.unknown) == 1 else "their dumps"
        yield (
            f"Whether {ranks_text(found.unknown)} called {found.calls[0][0].partition(' ')[0]} number "
            f"{found.number} of {found.group_text} is not in {whose}."
        )
    guessed = [group.text for group in groups if not group.is_stated]
    if guessed:
        yield (
            f"No dump states the ranks of {' and '.join(guessed[:3])}; they are taken to be "
            + ("those that have a dump or made a call in it." if len(guessed) == 1 else "those that made calls there.")
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
