"""The lines of a log -> the failures in it, whoever wrote them, each told once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from repros.match.failures import Failure, Link
from repros.match.tracebacks import read
from repros.match.wrappers import Line, unwrap

MOST_FAILURES = 1_000
_MOST_COMPARED = 100


def find(lines: Iterable[tuple[int, str]]) -> tuple[tuple[Failure, ...], tuple[str, ...]]:
    """Return the failures in the order in which they stand there, and a sentence if there are more than are read."""
    unwrapped = unwrap(lines)
    pytest = any(line.text.startswith("E  ") for line in unwrapped)
    by_label: dict[str, list[Line]] = {}
    for line in unwrapped:
        by_label.setdefault(line.label, []).append(line)
    merged: dict[tuple[object, ...], Failure] = {}
    for label, own in by_label.items():
        for chain in read(own, pytest=pytest):
            links = tuple(draft.link() for draft in chain)
            key = tuple(link.raised for link in links)
            seen = merged.get(key)
            labels = dict.fromkeys([*(seen.labels if seen else ()), *([label] if label else [])])
            merged[key] = Failure(_earlier(seen.links, links) if seen else links, tuple(labels))
    failures = sorted(merged.values(), key=lambda failure: failure.links[0].line)
    note = f"Of {len(failures):,} exceptions the first {MOST_FAILURES:,} were read."
    notes = (note,) if len(failures) > MOST_FAILURES else ()
    return tuple(_without_summaries(failures[:MOST_FAILURES])), notes


def _without_summaries(failures: list[Failure]) -> list[Failure]:
    """Leave out last lines that say again, without frames, what a whole traceback in the log has said."""
    told: dict[str, dict[str, None]] = {}
    for failure in failures:
        for link in failure.links:
            if link.whole:
                told.setdefault(_class(link), {})[_first_line(link)] = None
    return [failure for failure in failures if not (len(failure.links) == 1 and _is_summary(failure.links[0], told))]


def _is_summary(link: Link, told: dict[str, dict[str, None]]) -> bool:
    said, line = told.get(_class(link), {}), _first_line(link)
    if link.whole:
        return False
    if line.endswith("..."):  # pytest cuts it to the width of the terminal
        return any(one.startswith(line.removesuffix("...")) for one in islice(said, _MOST_COMPARED))
    return line in said


def _class(link: Link) -> str:
    return link.raised.type.rpartition(".")[2]


def _first_line(link: Link) -> str:
    return link.raised.message.partition("\n")[0].strip()


def _earlier(one: tuple[Link, ...], other: tuple[Link, ...]) -> tuple[Link, ...]:
    return min(one, other, key=lambda links: links[0].line)
