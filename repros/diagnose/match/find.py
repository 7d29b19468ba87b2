"""Find every failure in a log's lines, each once, with the labels of all processes that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from repros.diagnose.match.failures import Failure, Link, PartialException
from repros.diagnose.match.tracebacks import TracebackReader
from repros.diagnose.match.wrappers import repeatable, survey_lines, unwrap_lines
from repros.model import Raised

MOST_FAILURES = 1_000
"""Distinct failures that match the same repros, or none: of more, the first and the last half are kept."""
MOST_READERS = 10_000
"""Writers whose lines are read side by side; one more, and the one that has been silent for longest is forgotten."""
_MOST_COMPARED = 100


def find_failures(
    lines: Iterable[tuple[int, str]], ids_of: Callable[[Raised], frozenset[str]] = lambda _: frozenset()
) -> tuple[tuple[Failure, ...], tuple[str, ...]]:
    """Return the failures in the order of the log, and a note for what was left out.

    Args:
        lines: the log, which is read three times.
        ids_of: the ids of the repros that an exception matches. Failures are counted apart for each set of repros, so
            that any number of other exceptions drops none that is documented.
    """
    found = _MergedFailures(ids_of)
    for label, chain in _label_chains(repeatable(lines)):
        found.add(label, tuple(exception.to_link() for exception in chain))
    return tuple(_drop_summaries(found.in_order())), tuple(found.notes)


def _label_chains(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Sequence[PartialException]]]:
    """Yield each exception chain with the label of the process that wrote it, as soon as no line can belong to it."""
    survey = survey_lines(lines)
    readers: dict[str, TracebackReader] = {}
    for line in unwrap_lines(lines, survey):
        reader = readers.pop(line.label, None) or TracebackReader(pytest=survey.has_pytest)
        readers[line.label] = reader  # the last one that wrote is the last one
        reader.read_line(line)
        for chain in reader.take_finished():
            yield line.label, chain
        if len(readers) > MOST_READERS:
            silent = next(iter(readers))
            for chain in readers.pop(silent).take_all():
                yield silent, chain
    for label, reader in readers.items():
        for chain in reader.take_all():
            yield label, chain


class _MergedFailures:
    """Distinct failures, each with the labels of all that wrote it; of a group that is too large, both ends."""

    def __init__(self, ids_of: Callable[[Raised], frozenset[str]]) -> None:
        self._ids_of = ids_of
        self._groups: dict[frozenset[str], _BothEnds] = {}

    def add(self, label: str, links: tuple[Link, ...]) -> None:
        """Add a chain to the group of those that the same repros document; of equal ones the earliest is kept."""
        key = tuple(link.raised for link in links)
        group = next((group for group in self._groups.values() if group.find(key)), None)
        if group is None:
            group = self._groups.setdefault(frozenset[str]().union(*map(self._ids_of, key)), _BothEnds())
        kept, labels = group.find(key) or (links, {})
        if label:
            labels[label] = None
        group.keep(key, (min(kept, links, key=lambda chain: chain[0].line), labels))

    @property
    def notes(self) -> Iterator[str]:
        """A sentence for each group of which a part was left out."""
        for ids, group in self._groups.items():
            if group.dropped:
                whose = f"that match {' and '.join(sorted(ids))}" if ids else "that no repro documents"
                number = len(group.values) + group.dropped
                yield f"Of {number:,} exceptions {whose} the first and the last {MOST_FAILURES // 2:,} were read."

    def in_order(self) -> list[Failure]:
        """Return those that were kept, in the order of the log."""
        kept = (value for group in self._groups.values() for value in group.values)
        return sorted(
            (Failure(links, tuple(labels)) for links, labels in kept), key=lambda failure: failure.links[0].line
        )


_Key = tuple[Raised, ...]
_Merged = tuple[tuple[Link, ...], dict[str, None]]


class _BothEnds:
    """The first and the last values that were kept under different keys, and how many between them were dropped."""

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


def _drop_summaries(failures: list[Failure]) -> list[Failure]:
    """Leave out single last lines that repeat an exception whose traceback is in the log."""
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


def _is_summary(link: Link, first_lines: dict[str, None]) -> bool:
    """Whether an exception without a traceback has the message of one with a traceback.

    Args:
        link: the exception.
        first_lines: the first line of each message that the same class has with a traceback.
    """
    if link.has_traceback:
        return False
    line = _first_line(link)
    if line.endswith("..."):  # pytest cuts it to the width of the terminal
        return any(first.startswith(line.removesuffix("...")) for first in islice(first_lines, _MOST_COMPARED))
    return line in first_lines


def _class_name(link: Link) -> str:
    return link.raised.type.rpartition(".")[2]


def _first_line(link: Link) -> str:
    return link.raised.message.partition("\n")[0].strip()
