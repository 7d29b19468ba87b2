"""The index and the heat map: one row for each failure."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from repros.engine.evidence import StackStatus, measured_devices, stack_status
from repros.model import Repro, Role, Stack, affected
from repros.text.failures import pinned_version
from tools.site.prose import inline
from tools.site.source import Source

_SHOWN = {
    StackStatus.FAILS: ("fails", "✕", "f"),
    StackStatus.CLEAN: ("clean", "✓", "c"),
    StackStatus.DIFFERS: ("differs", "≠", "d"),
    None: ("not measured", "·", "n"),
}
"""A status in a word, in a letter, and as a style class, which is short because the index has one for each square."""

_NAMES = {"torch": "PyTorch", "lightning": "Lightning", "peft": "PEFT", "trl": "TRL"}
"""Libraries whose own spelling is not that of their package."""


@dataclass(frozen=True)
class Square:
    """One failure on one stack."""

    stack: Stack
    status: StackStatus | None
    """None: not measured there."""
    word: str
    symbol: str
    style: str
    """The class of its style."""

    def version(self, package: str) -> str:
        """Return the stack's release of a package; empty if it pins none."""
        return pinned_version(self.stack, package) or ""


def strip(repro: Repro, source: Source) -> list[Square]:
    """Return the measurements of one failure: a square per stack."""
    statuses = [stack_status(repro, stack, source.evidence) for stack in source.stacks]
    return [Square(stack, status, *_SHOWN[status]) for stack, status in zip(source.stacks, statuses, strict=True)]


def overview(source: Source) -> dict[str, Any]:
    """Return the values of the templates of the index and the heat map."""
    places = _places(source)
    rows = [row(repro, source) | {"places": places[repro.id]} for repro in source.catalogue]
    return {
        "rows": sorted(rows, key=lambda row: -len(row["repro"].upstream.reports)),
        "heat": sorted(rows, key=lambda row: (not row["changes"], row["repro"].packages[0])),
        "constant": sum(not row["changes"] for row in rows),
        "libraries": _libraries(source),
        "stacks": source.stacks,
        "choices": choices(source.catalogue),
        "packages": list(dict.fromkeys(pin.name for stack in source.stacks for pin in stack.requirements[:2])),
    }


def row(repro: Repro, source: Source) -> dict[str, Any]:
    """Return the index entry of one failure and its filter values."""
    squares = strip(repro, source)
    fails_on = [square.stack.name for square in squares if square.status is StackStatus.FAILS]
    return {
        "repro": repro,
        "title": inline(repro.title),
        "affected": affected_text(repro),
        "squares": squares,
        "changes": len({square.status for square in squares if square.status}) > 1,
        "fails_on": " ".join(fails_on),
        "label": f"fails on {', '.join(fails_on) or 'no stack'}",
        "works": sum(variant.role is Role.WORKS for variant in repro.variants),
        "fails_to": sum(variant.role is Role.DOES_NOT_FIX for variant in repro.variants),
        "devices": measured_devices(repro, source.evidence),
    }


def _libraries(source: Source) -> str:
    """Return the libraries with failures, those with most first."""
    number = Counter(package for repro in source.catalogue for package in repro.packages)
    names = [_NAMES.get(package, package) for package, _ in number.most_common()]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _places(source: Source) -> dict[str, list[int]]:
    """Return each failure's place in the orders that a reader can choose: by severity, the newest, most reports."""
    days = _first_days(source)
    keys: list[Callable[[Repro], Any]] = [
        lambda repro: severity(repro, source),
        lambda repro: (days.get(repro.id, dt.date.max), repro.id),
        lambda repro: len(repro.upstream.reports),
    ]
    orders = [sorted(source.catalogue, key=key, reverse=True) for key in keys]
    return {repro.id: [order.index(repro) for order in orders] for repro in source.catalogue}


def severity(repro: Repro, source: Source) -> tuple[int, int, int]:
    """Return how much a failure may cost its user; the greater, the more.

    A wrong result that nothing tells is worse than a program that hangs or ends without an error, and an error is the
    least. Of two alike, the one with fewer fixes that work, then the one that more stacks have.
    """
    shows = 2 if repro.silent else 1 if repro.failing.signature.ends else 0
    works = sum(variant.role is Role.WORKS for variant in repro.variants)
    fails = sum(square.status is StackStatus.FAILS for square in strip(repro, source))
    return (shows, -works, fails)


def _first_days(source: Source) -> dict[str, dt.date]:
    """Return the day of each failure's first kept measurement."""
    days: dict[str, dt.date] = {}
    for unit, measurement in source.evidence.items():
        days[unit.repro] = min(measurement.date, days.get(unit.repro, dt.date.max))
    return days


def affected_text(repro: Repro) -> str:
    """Return the affected releases on one line."""
    return affected.affected_text(repro.affected, repro.measurable)


def choices(repros: Iterable[Repro]) -> Mapping[str, list[str]]:
    """Return the values that the index can be filtered by."""
    known = tuple(repros)
    return {
        "packages": sorted({package for repro in known for package in repro.packages}),
        "strategies": sorted({strategy for repro in known for strategy in repro.strategies}),
        "kinds": sorted({repro.kind.value for repro in known}),
    }
