"""Find every distinct failure in a log's lines, with the labels of all processes that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from repros.diagnose.match.failures import ChainLink, LogFailure, PartialException
from repros.diagnose.match.tracebacks import TracebackParser
from repros.diagnose.match.wrappers import find_traits, repeatable, unwrap_lines
from repros.model import Raised

MOST_FAILURES = 1_000
"""Distinct failures that match the same repros, or none: of more, the first and the last half are kept."""
MOST_WRITERS = 10_000
"""Writers with a parser each; for one more, the parser of the writer that has been silent for longest is finished."""
_MOST_COMPARED = 100


def find_failures(
    lines: Iterable[tuple[int, str]], ids_of: Callable[[Raised], frozenset[str]] = lambda _: frozenset()
) -> tuple[tuple[LogFailure, ...], tuple[str, ...]]:
    """Return the failures in the order of the log, and a note for each omission.

    Args:
        lines: the log.
        ids_of: the ids of the repros that an exception matches. The limit applies to each set of repros separately, so
            that other exceptions, however many, displace no documented one.
    """
    merged = _MergedFailures(ids_of)
    for label, chain in _label_chains(repeatable(lines)):
        merged.add(label, tuple(exception.to_link() for exception in chain))
    return tuple(_drop_summaries(merged.in_order())), tuple(merged.notes)


def _label_chains(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Sequence[PartialException]]]:
    """Yield each exception chain with the label of its writer, as soon as no further line can belong to it."""
    traits = find_traits(lines)
    parsers: dict[str, TracebackParser] = {}  # in the order of each writer's last line
    for line in unwrap_lines(lines, traits):
        parser = parsers.pop(line.label, None) or TracebackParser(pytest=traits.has_pytest)
        parsers[line.label] = parser
        parser.parse_line(line)
        for chain in parser.take_finished():
            yield line.label, chain
        if len(parsers) > MOST_WRITERS:
            silent = next(iter(parsers))
            for chain in parsers.pop(silent).finish():
                yield silent, chain
    for label, parser in parsers.items():
        for chain in parser.finish():
            yield label, chain


class _MergedFailures:
    """Distinct failures with the labels of their writers; of a group that is too large, the first and the last half."""

    def __init__(self, ids_of: Callable[[Raised], frozenset[str]]) -> None:
        self._ids_of = ids_of
        self._groups: dict[frozenset[str], _BothEnds] = {}

    def add(self, label: str, links: tuple[ChainLink, ...]) -> None:
        """Add a chain to the group with the same repros; of equal chains, the earliest is kept."""
        key = tuple(link.raised for link in links)
        group = next((group for group in self._groups.values() if group.find(key)), None)
        if group is None:
            group = self._groups.setdefault(frozenset[str]().union(*map(self._ids_of, key)), _BothEnds())
        earliest, labels = group.find(key) or (links, {})
        if label:
            labels[label] = None
        group.keep(key, (min(earliest, links, key=lambda chain: chain[0].line), labels))

    @property
    def notes(self) -> Iterator[str]:
        """A sentence for each group of which a part was omitted."""
        for ids, group in self._groups.items():
            if group.dropped:
                which = f"that match {' and '.join(sorted(ids))}" if ids else "that match no repro"
                number = len(group.values) + group.dropped
                yield f"Of {number:,} exceptions {which}, only the first and the last {MOST_FAILURES // 2:,} were read."

    def in_order(self) -> list[LogFailure]:
        """Return the failures that were kept, in the order of the log."""
        values = (value for group in self._groups.values() for value in group.values)
        return sorted(
            (LogFailure(links, tuple(labels)) for links, labels in values), key=lambda failure: failure.links[0].line
        )


_Key = tuple[Raised, ...]
_Merged = tuple[tuple[ChainLink, ...], dict[str, None]]


class _BothEnds:
    """The first and the last values by their keys, and the number of those dropped between them."""

    def __init__(self) -> None:
        self._first: dict[_Key, _Merged] = {}
        self._last: dict[_Key, _Merged] = {}
        self._dropped: set[int] = set()

    def find(self, key: _Key) -> _Merged | None:
        return self._first.get(key) or self._last.get(key)

    def keep(self, key: _Key, value: _Merged) -> None:
        ends = self._first if key in self._first or len(self._first) < MOST_FAILURES // 2 else self._last
        ends[key] = value
        if len(self._last) > MOST_FAILURES // 2:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._dropped.add(hash(oldest))

    @property
    def dropped(self) -> int:
        return len(self._dropped - {hash(key) for key in self._last})

    @property
    def values(self) -> list[_Merged]:
        return [*self._first.values(), *self._last.values()]


def _drop_summaries(failures: list[LogFailure]) -> list[LogFailure]:
    """Drop single last lines that repeat an exception whose traceback is in the log."""
    first_lines: dict[str, dict[str, None]] = {}
    for failure in failures:
        for link in failure.links:
            if link.has_traceback:
                first_lines.setdefault(_class_name(link), {})[_first_line(link)] = None
    return [
        failure
        for failure in failures
        if len(failure.links) > 1
        or not _is_summary(failure.links[0], first_lines.get(_class_name(failure.links[0]), {}))
    ]


def _is_summary(link: ChainLink, first_lines: dict[str, None]) -> bool:
    """Whether an exception without a traceback has the message of one with a traceback.

    Args:
        link: the exception.
        first_lines: the first line of each message of the same class with a traceback.
    """
    if link.has_traceback:
        return False
    line = _first_line(link)
    if line.endswith("..."):  # pytest cuts it to the width of the terminal
        return any(first.startswith(line.removesuffix("...")) for first in islice(first_lines, _MOST_COMPARED))
    return line in first_lines


def _class_name(link: ChainLink) -> str:
    return link.raised.type.rpartition(".")[2]


def _first_line(link: ChainLink) -> str:
    return link.raised.message.partition("\n")[0].strip()
