"""Durations of cells in their last measurement, from the evidence."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from repros.engine.evidence import files
from repros.engine.evidence.measurement import Evidence, Measurement, Unit
from repros.engine.run_options import Timings
from repros.engine.schedule import Timing
from repros.model import Cell
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations


def recorded_timings(
    locations: CatalogueLocations, known: Mapping[Unit, Measurement] = MappingProxyType({})
) -> Timings:
    """Return the durations of cells from the recorded evidence, which is ignored if a file is damaged.

    Args:
        locations: the catalogues whose evidence is read.
        known: further evidence, which takes precedence.
    """
    try:
        recorded = files.read(locations=locations)
    except ReprosError:
        recorded = {}
    return timings({**recorded, **known})


def timings(evidence: Evidence) -> Timings:
    """Return a function that maps a cell to its duration.

    The ledger has one duration for each unit, which its cells share. If some of them are documented to hang, the other
    cells get the median duration, and the hangs share the rest. A unit without a measurement on the cell's stack gets
    the duration on another stack, and one without any measurement the median. The function returns None if there is no
    evidence at all.
    """
    elsewhere = {_on_any_stack(unit): measurement for unit, measurement in evidence.items()}
    medians = {launch: _median(evidence.values(), launch) for launch in {known.launch for known in evidence.values()}}
    overall = _median(evidence.values())

    def find(cell: Cell) -> Timing | None:
        unit = Unit.from_cell(cell)
        measured = evidence.get(unit) or elsewhere.get(_on_any_stack(unit))
        if measured is None or not measured.variants:
            return overall
        return _share(cell, measured, medians[measured.launch] or _per_cell(measured))

    return find


def _on_any_stack(unit: Unit) -> tuple[str, ...]:
    return unit.repro, unit.device, unit.strategy


def _per_cell(measured: Measurement) -> Timing:
    """Return the mean duration of the cells of a unit."""
    count = len(measured.variants)
    return Timing(measured.seconds / count, None if measured.processor is None else measured.processor / count)


def _median(measurements: Iterable[Measurement], launch: str | None = None) -> Timing | None:
    timings = [_per_cell(known) for known in measurements if known.variants and launch in {None, known.launch}]
    used = [timing.processor for timing in timings if timing.processor is not None]
    if not timings:
        return None
    return Timing(statistics.median(timing.seconds for timing in timings), statistics.median(used) if used else None)


def _share(cell: Cell, measured: Measurement, median: Timing) -> Timing:
    variants = [variant for variant in cell.repro.variants if variant.name in measured.variants]
    hangs = sum(replace(cell, variant=variant).is_documented_hang for variant in variants)
    mean = _per_cell(measured)
    if not hangs:
        return mean
    if not cell.is_documented_hang:
        return median
    others = len(measured.variants) - hangs
    return Timing(max(mean.seconds, (measured.seconds - others * median.seconds) / hangs), mean.processor)
