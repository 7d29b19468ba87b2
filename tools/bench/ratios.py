"""Ratios of alternating pairs, in which other load cancels out: `python -m tools.bench.ratios`, a part of `bench`.

A measurement is a function in `MEASUREMENTS`: it takes the number of rounds and yields ratios. Each ratio is compared
with its limit and with the kept one; `--out tools/bench/kept.json` keeps the new ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tools.bench.cells import sample_cells
from tools.bench.kept import keep, read_kept
from tools.bench.startup import PASS, RATIOS, ROUNDS, startup_ratios, time_startup


@dataclass(frozen=True)
class Ratio:
    """What one thing costs compared with another, in pairs that ran one right after the other."""

    what: str
    pairs: Sequence[tuple[float, float]]
    """The measured cost and that of the base, in one unit."""
    wanted: float | None = None
    """The most that the median may be; None: only no worse than the kept one."""


Measurement = Callable[[int], Iterable[Ratio]]
"""Yields ratios, given the number of rounds."""


def _startup(rounds: int) -> Iterator[Ratio]:
    for command, pairs in startup_ratios(time_startup(rounds)):
        yield Ratio(f"processor time, {command} / {PASS}", pairs, RATIOS.get(command))


def _cells(rounds: int) -> Iterator[Ratio]:
    for label, hand, warm in sample_cells(rounds):
        costs = [*zip(warm, hand, strict=True)]
        yield Ratio(f"processor time, warm {label} / by hand", [(one.cpu, other.cpu) for one, other in costs])
        yield Ratio(f"page faults, warm {label} / by hand", [(one.faults, other.faults) for one, other in costs])


MEASUREMENTS: Mapping[str, Measurement] = {"startup": _startup, "cells": _cells}
"""By the name of the group, which `--only` takes."""


def measure_ratios(rounds: int, only: Iterable[str] = ()) -> dict[str, Any]:
    """Return the figures of all ratios, or of those of some groups."""
    chosen = [*only] or [*MEASUREMENTS]
    return {ratio.what: ratio_figures(ratio) for group in chosen for ratio in MEASUREMENTS[group](rounds)}


def ratio_figures(ratio: Ratio) -> dict[str, Any]:
    """Return the median of a ratio, the quartiles, and the number of pairs."""
    values = [cost / base for cost, base in ratio.pairs]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    rounded = {"median": statistics.median(values), "low": low, "high": high}
    figures: dict[str, Any] = {name: round(value, 3) for name, value in rounded.items()}
    return figures | {"pairs": len(values), "wanted": ratio.wanted}


def compare_ratios(measured: Mapping[str, Any], kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the target of each ratio: its limit, and no worse than the kept one.

    It is worse if the middle half of its pairs lies above that of the kept pairs.
    """
    targets = []
    for what, figures in measured.items():
        before, wanted = kept.get(what), figures["wanted"]
        is_worse = before is not None and figures["low"] > before["high"]
        limits = [f"at most {wanted:g}x"] if wanted is not None else []
        limits += [f"as kept, {before['median']:.2f}x"] if before else []
        targets.append(
            {
                "what": what,
                "wanted": " and ".join(limits),
                "measured": f"{figures['median']:.2f}x ({figures['low']:.2f} to {figures['high']:.2f})",
                "met": not is_worse and (wanted is None or figures["median"] <= wanted),
            }
        )
    return targets


def ratios_table(targets: Iterable[Mapping[str, Any]]) -> Table:
    """Return targets as a table."""
    table = Table(title="ratios, as medians and middle halves of alternating pairs")
    for column in ("what", "wanted", "measured", ""):
        table.add_column(column)
    for target in targets:
        table.add_row(target["what"], target["wanted"], target["measured"], "met" if target["met"] else "missed")
    return table


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Pairs of each ratio.")
@click.option("--only", type=click.Choice([*MEASUREMENTS]), multiple=True, help="Only this group; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(".repros/bench.json"), show_default=True)
def main(rounds: int, only: tuple[str, ...], out: Path) -> None:
    """Measure the ratios, compare them with the kept ones, and write them as JSON."""
    measured = measure_ratios(rounds, only)
    Console().print(ratios_table(compare_ratios(measured, read_kept().get("ratios", {}))))
    keep({"ratios": read_kept(out).get("ratios", {}) | measured}, out)


if __name__ == "__main__":
    main()
