"""The plots: cost of the evidence, sizes of the stacks, and results of `nox -s bench`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from repros.text.wording import count
from tools.site.overview import Square
from tools.site.source import Source

_MODES = ("by hand", "cold", "warm")


@dataclass(frozen=True)
class Bar:
    """One bar of a plot."""

    label: str
    note: str
    """Text below the label."""
    text: str
    """The value with its unit."""
    share: float
    """Its length as a part of the longest, from 0 to 100."""


@dataclass(frozen=True)
class Plot:
    """One plot of horizontal bars."""

    title: str
    about: str
    bars: list[Bar]


def plots(source: Source) -> list[Plot]:
    """Return all plots."""
    return [*_bench(source.bench), *_evidence(source), *_sizes(source)]


def _plot(title: str, about: str, text: str, values: Iterable[tuple[str, str, float]]) -> Plot:
    """Return a plot of labels, notes and values; `text` formats a value, such as `{:.1f} s`."""
    known = [*values]
    most = max((value for _, _, value in known), default=0) or 1
    return Plot(
        title,
        about,
        [Bar(label, note, text.format(value), round(100 * value / most, 1)) for label, note, value in known],
    )


def _bench(kept: Mapping[str, Any]) -> Iterator[Plot]:
    """Yield the plots of a kept benchmark, in processor seconds, which other load changes least."""
    for cell in kept["cells"]:
        ratios = cell["times_as_fast"]
        yield _plot(
            f"Processor seconds of {cell['label']}, by launch",
            "By hand is python script.py; cold is the same, supervised and judged; warm ranks are forked from a "
            "process that has imported the libraries.",
            "{:.2f} s",
            (
                (mode, f"{ratios[mode]['cpu']:.1f} x as fast" if mode in ratios else "", cell[mode]["cpu_seconds"])
                for mode in _MODES
            ),
        )
    startup = kept["startup"].items()
    yield _plot(
        "Processor seconds of a command that answers at once",
        f"Median of {count(max(timing['rounds'] for _, timing in startup), 'round')}.",
        "{:.2f} s",
        (
            (name, f"{timing['cpu_ratio']} x python -c pass", timing["cpu_seconds"]["median"])
            for name, timing in startup
        ),
    )
    epochs = kept["epochs"]
    cores = epochs["machine"]["processors"]
    measured = ((epochs["networks_on_one_core"], "1 core"), (epochs["networks"], f"{cores} cores"))
    yield _plot(
        "An epoch on the simulated accelerator, compared with the CPU",
        f"Processor seconds of {epochs['batches']} batches in a Lightning fit, as a multiple of those on the "
        "CPU. It shows what the simulation costs, and nothing about a GPU.",
        "{:.2f} x",
        (
            (f"{name}, {where}", count(network["rounds"], "round"), network["processor"]["ratio"]["median"])
            for networks, where in measured
            for name, network in networks.items()
        ),
    )


def _evidence(source: Source) -> Iterator[Plot]:
    """Yield the plots of the duration of measurements."""
    notes = _notes(source)
    units = {
        name: [measurement for unit, measurement in source.evidence.items() if unit.stack == name] for name in notes
    }
    cells = {name: sum(len(measurement.variants) for measurement in found) for name, found in units.items()}
    seconds = {name: sum(measurement.seconds for measurement in found) for name, found in units.items()}
    yield _plot(
        "Seconds for a cell, by stack",
        "Mean over all measured cells.",
        "{:.1f} s",
        ((name, notes[name], seconds[name] / cells[name]) for name in cells if cells[name]),
    )
    launches: dict[str, list[float]] = {}
    for measurement in source.evidence.values():
        label = f"{measurement.launch}, {count(measurement.processes, 'rank')}"
        launches.setdefault(label, []).append(measurement.seconds / len(measurement.variants))
    yield _plot(
        "Seconds for a cell, by launch",
        "Median of the measured units.",
        "{:.1f} s",
        ((name, count(len(each), "unit"), median(each)) for name, each in sorted(launches.items())),
    )
    yield _plot(
        "Cells measured, by stack",
        "A cell is one variant of a failure, under a strategy, on a device.",
        "{:.0f}",
        ((name, notes[name], number) for name, number in cells.items()),
    )


def _sizes(source: Source) -> Iterator[Plot]:
    """Yield the plots of the stacks' measured sizes."""
    notes, about = _notes(source), "With torch's CUDA build."
    sizes = {stack.name: stack.cuda for stack in source.stacks if stack.cuda}
    downloads = ((name, notes[name], size.download / 1e9) for name, size in sizes.items())
    disk = ((name, notes[name], size.unpacked / 1e9) for name, size in sizes.items())
    yield _plot("Download, by stack", about, "{:.1f} GB", downloads)
    yield _plot("Disk, by stack", about, "{:.1f} GB", disk)


def _notes(source: Source) -> dict[str, str]:
    return {stack.name: f"torch {Square(stack, None).version('torch')}" for stack in source.stacks}
