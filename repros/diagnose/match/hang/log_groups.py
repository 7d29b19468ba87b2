"""What the watchdog's lines of several ranks say together: the same answer as for dumps, as far as they go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from repros.diagnose.match.hang.calls import DEFAULT, group_text
from repros.diagnose.match.hang.disagree import Disagreement, Kind
from repros.diagnose.match.hang.watchdog import Desync, Report, WatchdogLines


def find_log_disagreements(lines: WatchdogLines) -> tuple[Disagreement, ...]:
    """Return where the ranks that have written into a log disagree, for each group; empty without such lines.

    The calls of a group that the log does not name may be of several groups, so only equal numbers are compared there.
    """
    found = []
    for (name, description, _), reports in _by_group(lines.reports).items():
        numbers = sorted({number for report in reports for number in report.timed_out})
        for number in numbers if not name else numbers[:1]:
            compared = reports if name else [report for report in reports if number in report.timed_out]
            found.append(_judge(name, description, compared, number))
    return (*found, *map(_of_desync, lines.desyncs))


def _by_group(reports: Iterable[Report]) -> dict[_Key, list[Report]]:
    """Return the reports of each group; one that names no group with those of the only group that is in its call."""
    kept = tuple(reports)
    named: dict[tuple[int, bool], set[_Key]] = {}
    for report in kept if any(not report.group for report in kept) else ():
        for number in report.timed_out if report.group else ():
            named.setdefault((number, report.is_global), set()).add(_key(report))
    groups: dict[_Key, list[Report]] = {}
    for report in kept:
        keys = set[_Key]().union(*(named.get((number, report.is_global), ()) for number in report.timed_out))
        key = next(iter(keys)) if not report.group and len(keys) == 1 else _key(report)
        groups.setdefault(key, []).append(report)
    return groups


_Key = tuple[str, str, bool]


def _key(report: Report) -> _Key:
    return report.group, report.description, report.is_global


def _judge(name: str, description: str, reports: Sequence[Report], number: int) -> Disagreement:
    """Return what is to be said about the first collective in which a rank of a group has timed out."""
    waiting = [report for report in reports if _waits(report, number)]
    others = [report for report in reports if not _waits(report, number)]
    missing = _ranks(report for report in others if report.enqueued is not None and report.enqueued < number)
    finished = _ranks(report for report in others if _has_finished(report, number))
    unknown = _ranks(report for report in others if report.rank not in {*missing, *finished})
    calls = _variants(waiting, number)
    kind = Kind.ALL_WAIT
    if missing:
        kind = Kind.MISSING
    elif len(calls) > 1:
        kind = Kind.OTHER_CALL
    elif finished:
        kind = Kind.AHEAD if calls[0][0].partition(" ")[0] in _ONE_SIDED else Kind.UNFINISHED
    ranks = _ranks(reports)
    is_world = description == DEFAULT and all(report.is_global for report in reports)
    return Disagreement(
        *(kind, name, group_text(name, description), ranks, number, calls, _ranks(waiting), missing, finished, unknown),
        absent=tuple(_gaps(ranks)) if is_world else (),
    )


def _waits(report: Report, number: int) -> bool:
    """Whether a rank is in a collective: it has timed out there, or enqueued it and not seen its end."""
    if number in report.timed_out:
        return True
    return report.enqueued is not None and report.completed is not None and report.completed < number <= report.enqueued


def _has_finished(report: Report, number: int) -> bool:
    """Whether a rank has seen a collective end: it says so, or has timed out in a later one of the group."""
    return (report.completed is not None and report.completed >= number) or any(at > number for at in report.timed_out)


def _ranks(reports: Iterable[Report]) -> tuple[int, ...]:
    return tuple(sorted({report.rank for report in reports}))


def _gaps(ranks: Sequence[int]) -> Iterator[int]:
    """Yield the ranks below the greatest one that have not written."""
    yield from (rank for rank in range(max(ranks)) if rank not in ranks)


def _variants(reports: Iterable[Report], number: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return what was called and by whom, the most usual first; a line may not say what its collective was."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        text = report.timed_out.get(number, "")
        operation = text.partition(" ")[0]
        groups.setdefault(operation if _is_uneven(operation) else text, []).append(report)
    if len(groups) > 1 and "" in groups:
        del groups[""]
    ordered = sorted(groups.values(), key=lambda group: (-len(group), _ranks(group)))
    return tuple((group[0].timed_out.get(number) or "a collective", _ranks(group)) for group in ordered)


_ONE_SIDED = ("BROADCAST", "_BROADCAST_OOP", "REDUCE", "_REDUCE_OOP", "GATHER", "SCATTER")
"""Operations that one rank may end while others still run."""


def _is_uneven(operation: str) -> bool:
    """Whether the ranks' numbers of elements may differ."""
    return operation in ("GATHER", "SCATTER") or "ALLTOALL" in operation


def _of_desync(desync: Desync) -> Disagreement:
    """Return torch's own answer."""
    missing = tuple(sorted({*desync.never, *desync.behind}))
    waiting = tuple(sorted({*desync.joined, *(rank for ranks in desync.started.values() for rank in ranks)}))
    return Disagreement(
        Kind.MISSING if missing else Kind.ALL_WAIT,
        group="",
        group_text="the group that torch itself has compared",
        ranks=tuple(sorted({*missing, *waiting})),
        number=desync.number,
        calls=(("the next collective", waiting),),
        waiting=waiting,
        missing=missing,
    )
