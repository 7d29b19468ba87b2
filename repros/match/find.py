"""Find every failure in a log's lines, each once, with the labels of all processes that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from repros.match.failures import Failure, Link, PartialException
from repros.match.tracebacks import TracebackReader
from repros.match.wrappers import repeatable, survey_lines, unwrap_lines

MOST_FAILURES = 1_000
MOST_READERS = 10_000
"""Writers whose lines are read side by side; one more, and the one that has been silent for longest is forgotten."""
_MOST_COMPARED = 100


def find_failures(lines: Iterable[tuple[int, str]]) -> tuple[tuple[Failure, ...], tuple[str, ...]]:
    """Return the failures in the order of the log, and a note if there are more than :data:`MOST_FAILURES`.

    Args:
        lines: the log, which is read three times.
    """
    found = _MergedFailures()
    for label, chain in _label_chains(repeatable(lines)):
        found.add(label, tuple(exception.to_link() for exception in chain))
    note = f"Of {found.count:,} exceptions the first {MOST_FAILURES:,} were read."
    notes = (note,) if found.count > MOST_FAILURES else ()
    return tuple(_drop_summaries(found.in_order())), notes


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
    """The first distinct failures, each with the labels of all that wrote it, and the number of all of them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[tuple[Link, ...], dict[str, None]]] = {}
        self._others: set[int] = set()

    def add(self, label: str, links: tuple[Link, ...]) -> None:
        """Add a chain; of equal ones the earliest is kept."""
        key = tuple(link.raised for link in links)
        known = self._kept.get(key)
        if known is None and len(self._kept) >= MOST_FAILURES:
            self._others.add(hash(key))
            return
        kept, labels = known or (links, {})
        if label:
            labels[label] = None
        self._kept[key] = (min(kept, links, key=lambda one: one[0].line), labels)

    @property
    def count(self) -> int:
        """The number of distinct failures."""
        return len(self._kept) + len(self._others)

    def in_order(self) -> list[Failure]:
        """Return those that were kept, in the order of the log."""
        failures = (Failure(links, tuple(labels)) for links, labels in self._kept.values())
        return sorted(failures, key=lambda failure: failure.links[0].line)


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
