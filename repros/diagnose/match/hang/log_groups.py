"""Find where ranks disagree in the watchdog's lines of a log, as `disagree` does in dumps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from repros.diagnose.match.hang.calls import DEFAULT, group_text
from repros.diagnose.match.hang.disagree import DisagreementKind, RankDisagreement
from repros.diagnose.match.hang.watchdog import Desync, WatchdogLines, WatchdogReport


def find_log_disagreements(lines: WatchdogLines) -> tuple[RankDisagreement, ...]:
    """Return the disagreements of the ranks in each group; empty without lines of the watchdog.

    Calls without a group's name may belong to several groups, so only equal numbers are compared.
    """
    disagreements = []
    for (name, description, _), reports in _by_group(lines.reports).items():
        numbers = sorted({number for report in reports for number in report.timed_out})
        for number in numbers if not name else numbers[:1]:
            compared = reports if name else [report for report in reports if number in report.timed_out]
            disagreements.append(_judge(name, description, compared, number))
    return (*disagreements, *map(_of_desync, lines.desyncs))


def _by_group(reports: Iterable[WatchdogReport]) -> dict[_Key, list[WatchdogReport]]:
    """Return the reports of each group; a report without a name joins the only group with the same call, if any."""
    reports = tuple(reports)
    named: dict[tuple[int, bool], set[_Key]] = {}
    for report in reports if any(not report.group for report in reports) else ():
        for number in report.timed_out if report.group else ():
            named.setdefault((number, report.is_global), set()).add(_key(report))
    groups: dict[_Key, list[WatchdogReport]] = {}
    for report in reports:
        keys = set[_Key]().union(*(named.get((number, report.is_global), ()) for number in report.timed_out))
        key = next(iter(keys)) if not report.group and len(keys) == 1 else _key(report)
        groups.setdefault(key, []).append(report)
    return groups


_Key = tuple[str, str, bool]


def _key(report: WatchdogReport) -> _Key:
    return report.group, report.description, report.is_global


def _judge(name: str, description: str, reports: Sequence[WatchdogReport], number: int) -> RankDisagreement:
    """Return the disagreement about one collective in which a rank of a group has timed out."""
    waiting = [report for report in reports if _waits(report, number)]
    others = [report for report in reports if not _waits(report, number)]
    missing = _ranks(report for report in others if report.enqueued is not None and report.enqueued < number)
    finished = _ranks(report for report in others if _has_finished(report, number))
    unknown = _ranks(report for report in others if report.rank not in {*missing, *finished})
    calls = _variants(waiting, number)
    kind = DisagreementKind.ALL_WAIT
    if missing:
        kind = DisagreementKind.MISSING
    elif len(calls) > 1:
        kind = DisagreementKind.OTHER_CALL
    elif finished:
        kind = DisagreementKind.AHEAD if calls[0][0].partition(" ")[0] in _ONE_SIDED else DisagreementKind.UNFINISHED
    ranks = _ranks(reports)
    is_world = description == DEFAULT and all(report.is_global for report in reports)
    return RankDisagreement(
        *(kind, name, group_text(name, description), ranks, number, calls, _ranks(waiting), missing, finished, unknown),
        absent=tuple(_gaps(ranks)) if is_world else (),
    )


def _waits(report: WatchdogReport, number: int) -> bool:
    """Whether a rank is in a collective: it timed out, or was enqueued and not completed."""
    if number in report.timed_out:
        return True
    return report.enqueued is not None and report.completed is not None and report.completed < number <= report.enqueued


def _has_finished(report: WatchdogReport, number: int) -> bool:
    """Whether a rank has completed a collective: its status says so, or it timed out in a later one of the group."""
    return (report.completed is not None and report.completed >= number) or any(at > number for at in report.timed_out)


def _ranks(reports: Iterable[WatchdogReport]) -> tuple[int, ...]:
    return tuple(sorted({report.rank for report in reports}))


def _gaps(ranks: Sequence[int]) -> Iterator[int]:
    """Yield the ranks below the highest one without a line in the log."""
    yield from (rank for rank in range(max(ranks)) if rank not in ranks)


def _variants(reports: Iterable[WatchdogReport], number: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the calls and their ranks, the most frequent first; a line may lack the operation of its collective."""
    groups: dict[str, list[WatchdogReport]] = {}
    for report in reports:
        text = report.timed_out.get(number, "")
        operation = text.partition(" ")[0]
        groups.setdefault(operation if _is_uneven(operation) else text, []).append(report)
    if len(groups) > 1 and "" in groups:
        del groups[""]
    ordered = sorted(groups.values(), key=lambda group: (-len(group), _ranks(group)))
    return tuple((group[0].timed_out.get(number) or "a collective", _ranks(group)) for group in ordered)


_ONE_SIDED = ("BROADCAST", "_BROADCAST_OOP", "REDUCE", "_REDUCE_OOP", "GATHER", "SCATTER")
"""Operations that one rank may complete before others."""


def _is_uneven(operation: str) -> bool:
    """Whether the ranks' numbers of elements may differ."""
    return operation in ("GATHER", "SCATTER") or "ALLTOALL" in operation


def _of_desync(desync: Desync) -> RankDisagreement:
    """Return the disagreement that torch's own comparison states."""
    missing = tuple(sorted({*desync.never, *desync.behind}))
    waiting = tuple(sorted({*desync.joined, *(rank for ranks in desync.started.values() for rank in ranks)}))
    return RankDisagreement(
        DisagreementKind.MISSING if missing else DisagreementKind.ALL_WAIT,
        group="",
        group_text="the group that torch compared",
        ranks=tuple(sorted({*missing, *waiting})),
        number=desync.number,
        calls=(("the next collective", waiting),),
        waiting=waiting,
        missing=missing,
    )
