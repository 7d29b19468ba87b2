"""Find every failure in a log's lines, each once, with the labels of all processes that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from repros.match.failures import Failure, Link
from repros.match.tracebacks import read_chains
from repros.match.wrappers import LogLine, unwrap_lines

MOST_FAILURES = 1_000
_MOST_COMPARED = 100


def find_failures(lines: Iterable[tuple[int, str]]) -> tuple[tuple[Failure, ...], tuple[str, ...]]:
    """Return the failures in the order of the log, and a note if there are more than :data:`MOST_FAILURES`."""
    failures = sorted(_merge_chains(_label_chains(unwrap_lines(lines))), key=lambda failure: failure.links[0].line)
    note = f"Of {len(failures):,} exceptions the first {MOST_FAILURES:,} were read."
    notes = (note,) if len(failures) > MOST_FAILURES else ()
    return tuple(_drop_summaries(failures[:MOST_FAILURES])), notes


def _label_chains(lines: list[LogLine]) -> Iterator[tuple[str, tuple[Link, ...]]]:
    """Yield each exception chain with the label of the process that wrote it."""
    pytest = any(line.text.startswith("E  ") for line in lines)
    by_label: dict[str, list[LogLine]] = {}
    for line in lines:
        by_label.setdefault(line.label, []).append(line)
    for label, own in by_label.items():
        for chain in read_chains(own, pytest=pytest):
            yield label, tuple(exception.to_link() for exception in chain)


def _merge_chains(chains: Iterable[tuple[str, tuple[Link, ...]]]) -> list[Failure]:
    """Return one failure for all equal chains, with their labels; its lines are those of the earliest."""
    merged: dict[tuple[object, ...], Failure] = {}
    for label, links in chains:
        key = tuple(link.raised for link in links)
        known = merged.get(key, Failure(links, ()))
        labels = dict.fromkeys([*known.labels, *([label] if label else [])])
        merged[key] = Failure(min(known.links, links, key=lambda links: links[0].line), tuple(labels))
    return list(merged.values())


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
        return any(one.startswith(line.removesuffix("...")) for one in islice(first_lines, _MOST_COMPARED))
    return line in first_lines


def _class_name(link: Link) -> str:
    return link.raised.type.rpartition(".")[2]


def _first_line(link: Link) -> str:
    return link.raised.message.partition("\n")[0].strip()
