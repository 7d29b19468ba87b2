"""How long cells took when they were last measured, from the evidence."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from repros.engine.evidence import files
from repros.engine.evidence.measurement import Evidence, Measurement, Unit
from repros.engine.local import Timings
from repros.engine.schedule import Timing, is_documented_hang
from repros.model import Cell
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations


def kept_timings(places: CatalogueLocations, known: Mapping[Unit, Measurement] = MappingProxyType({})) -> Timings:
    """Return how long cells took, from the evidence at these places; none of it if a file is damaged.

    Args:
        places: the private catalogues, beside that of the package.
        known: further evidence, which counts first.
    """
    try:
        kept = files.read(places=places)
    except ReprosError:
        kept = {}
    return timings({**kept, **known})


def timings(evidence: Evidence) -> Timings:
    """Return a function from a cell to how long it took.

    The ledger keeps one time for each unit, which its cells share. Where some of them are documented to hang, the
    others count as usual cells, and the rest of the time was waited. What was not measured on a stack counts as on
    another one; what was measured on none, as a usual cell; the function returns None if there is no evidence at all.
    """
    elsewhere = {_on_any_stack(unit): measurement for unit, measurement in evidence.items()}
    usual = {launch: _usual(evidence.values(), launch) for launch in {known.launch for known in evidence.values()}}
    anything = _usual(evidence.values())

    def find(cell: Cell) -> Timing | None:
        unit = Unit.of_cell(cell)
        measured = evidence.get(unit) or elsewhere.get(_on_any_stack(unit))
        if measured is None or not measured.variants:
            return anything
        return _share(cell, measured, usual[measured.launch] or _of_one(measured))

    return find


def _on_any_stack(unit: Unit) -> tuple[str, ...]:
    return unit.repro, unit.device, unit.strategy


def _of_one(measured: Measurement) -> Timing:
    """Return the time of one cell of a unit, if all took as long."""
    number = len(measured.variants)
    return Timing(measured.seconds / number, None if measured.processor is None else measured.processor / number)


def _usual(measurements: Iterable[Measurement], launch: str | None = None) -> Timing | None:
    each = [_of_one(known) for known in measurements if known.variants and launch in {None, known.launch}]
    used = [timing.processor for timing in each if timing.processor is not None]
    if not each:
        return None
    return Timing(statistics.median(one.seconds for one in each), statistics.median(used) if used else None)


def _share(cell: Cell, measured: Measurement, usual: Timing) -> Timing:
    variants = [variant for variant in cell.repro.variants if variant.name in measured.variants]
    hangs = sum(is_documented_hang(replace(cell, variant=variant)) for variant in variants)
    each = _of_one(measured)
    if not hangs:
        return each
    if not is_documented_hang(cell):
        return usual
    others = len(measured.variants) - hangs
    return Timing(max(each.seconds, (measured.seconds - others * usual.seconds) / hangs), each.processor)
