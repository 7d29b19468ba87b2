"""Cost of `repros watch`: trainings in turn with and without it; also a program, `python -m tools.bench.watched`."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from repros.engine import environments
from repros.engine.stacks import stack
from tools.bench import machine
from tools.bench.kept import keep, read_kept, spread

TRAINING = Path(__file__).with_name("training.py")
STEPS = {"perceptron": 600, "residual": 24, "transformer": 15}
"""Steps of one run, by network."""
RANKS = (1, 2)
PAIR = ("without", "with")
KINDS = (*PAIR, "accounted")
"""How a training is run; `accounted` is under the watch, too, and times the watch's own observers."""
RUN = 1000
"""Steps of the run that the ratio is computed for."""
WANTED = {"residual": 1.02, "transformer": 1.02}
"""The most that a run may cost, as a ratio."""
EVERY = 1000
"""Steps between two full inspections by default."""
FOLLOWING = 3
"""Steps after a full inspection in whose backward the loss is inspected."""


def is_due(number: int) -> bool:
    """Return whether the watch inspects step `number`, from 1, in full, as `Watch.is_due` does by default."""
    return number & (number - 1) == 0 or number % EVERY == 0


def kind_of(number: int) -> str:
    """Return whether step `number` is `looked at`, `following` such a step, or `between`."""
    if is_due(number):
        return "looked at"
    return "following" if any(map(is_due, range(max(1, number - FOLLOWING), number))) else "between"


def measure_watch(
    python: Path,
    rounds: int,
    networks: Sequence[str] = tuple(STEPS),
    kinds: Sequence[str] = KINDS,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Run each training with and without the watch, in turn and in changing order; return the figures.

    On a busy machine, `kinds` of `accounted` alone give the share of the watch's own work, and no pairs to compare.
    `options` are those of `repros watch`.
    """
    observed = machine.Machine()
    turns = [kinds if number % 2 == 0 else kinds[::-1] for number in range(rounds)]
    measured = {
        f"{name}, {processes}": watched_figures([_round(python, name, processes, turn, options) for turn in turns])
        for name in networks
        for processes in RANKS
    }
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"at": at, "machine": observed.describe(), "networks": measured}


def _round(python: Path, name: str, processes: int, kinds: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    words = [str(python), str(TRAINING), name, str(processes), str(STEPS[name])]
    watch = [sys.executable, "-m", "repros", "watch", *options, "--"]
    commands = {"without": words, "with": [*watch, *words], "accounted": [*watch, *words, "accounted"]}
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    taken = {}
    for kind in kinds:
        done = subprocess.run(commands[kind], env=environ, capture_output=True, text=True, check=True)
        assert kind == "without" or "\nrepros: no finding: " in f"\n{done.stderr}", done.stderr
        taken[kind] = json.loads(done.stdout.splitlines()[-1])
    return taken


def watched_figures(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ratios of seconds with the watch to those without it, by clock, and the peaks of memory."""
    figures: dict[str, Any] = {"rounds": len(rounds)}
    for clock in ("wall", "processor") if "without" in rounds[0] else ():
        pairs = [
            {kind: seconds_by_kind_of_step(timed[kind]["seconds"][clock]) for kind in ("without", "with")}
            for timed in rounds
        ]
        figures[clock] = {
            "seconds": statistics.median(pair["without"]["between"] for pair in pairs),
            **{
                step: spread([pair["with"][step] / pair["without"][step] for pair in pairs], 4)
                for step in ("between", "looked at", "run")
            },
        }
    peaks = {
        kind: statistics.median(timed[kind]["peak_bytes"] for timed in rounds) for kind in PAIR if kind in rounds[0]
    }
    return figures | {"own": _own_share([timed["accounted"]["seconds"] for timed in rounds]), "peak_bytes": peaks}


def _own_share(rounds: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """Return the share of the watch's observers in the processor seconds of a step, which other load changes little."""
    shares: dict[str, list[float]] = {"between": [], "looked at": [], "run": []}
    for seconds in rounds:
        its, own = (seconds_by_kind_of_step(seconds[clock]) for clock in ("processor", "own"))
        for step, found in shares.items():
            found.append(own[step] / its[step])
    return {step: round(statistics.median(found), 5) for step, found in shares.items()}


def seconds_by_kind_of_step(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median seconds of a step of each kind, and the mean of a run of `RUN` steps.

    The first step, in which torch and the allocator prepare themselves, is left out.
    """
    steps = [*enumerate(seconds, 1)][1:]
    counts = Counter(map(kind_of, range(1, RUN + 1)))
    found = {kind: statistics.median(taken for number, taken in steps if kind_of(number) == kind) for kind in counts}
    return found | {"run": sum(counts[kind] * found[kind] for kind in counts) / RUN}


def compare_watch(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each target with the measured figure, and whether it is met.

    The figure is the watch's own share, measured within one run: two runs of the same training differ by more.
    """
    return [
        {
            "what": f"repros watch, {label}",
            "wanted": f"at most {100 * (WANTED[name] - 1):+.0f} %",
            "measured": percent(ratio),
            "met": ratio <= WANTED[name],
        }
        for label, timing in measured["networks"].items()
        if (name := label.partition(",")[0]) in WANTED
        for ratio in [1 / (1 - timing["own"]["run"])]
    ]


def percent(ratio: float) -> str:
    """Return what a ratio adds, such as `+1.2 %`."""
    return f"{100 * (ratio - 1):+.1f} %"


def watch_rows(measured: Mapping[str, Any]) -> list[list[str]]:
    """Return a heading and a row for each training and clock."""
    head = [
        *("network, ranks", "seconds", "ms a step", "in between", "looked at", f"{RUN} steps", "(min to max)"),
        "peak MB",
    ]
    found = [head]
    for label, timing in measured["networks"].items():
        shares = [f"{100 * timing['own'][step]:.2f} %" for step in ("between", "looked at", "run")]
        found.append([label, "its own", "", *shares, "", ""])
        for clock in ("processor", "wall") if "processor" in timing else ():
            its = timing[clock]
            ratios = [percent(its[step]["median"]) for step in ("between", "looked at", "run")]
            ends = " to ".join(percent(its["run"][which]) for which in ("min", "max"))
            peaks = " → ".join(f"{timing['peak_bytes'][kind] / 1e6:,.0f}" for kind in ("without", "with"))
            found.append([label, clock, f"{1000 * its['seconds']:,.2f}", *ratios, ends, peaks])
    return found


def watch_table(measured: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""
    head, *body = watch_rows(measured)
    made = Table(title="what repros watch adds to a training")
    for column in head:
        made.add_column(column, justify="left" if column in {"network, ranks", "seconds"} else "right")
    for row in body:
        made.add_row(*row)
    return made


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stack", default="current")
    parser.add_argument("--own", action="store_true", help="only the watch's own share, for a busy machine")
    parser.add_argument("--keep", action="store_true", help="put the figures into tools/bench/kept.json")
    parser.add_argument("--first-nan", action="store_true", help="cost of --first-nan, recorded separately")
    parser.add_argument("networks", nargs="*", default=list(STEPS))
    asked = parser.parse_args()
    python = environments.ensure(stack(asked.stack), print)
    part, options = ("first_nan", ["--first-nan"]) if asked.first_nan else ("watch", [])
    measured = measure_watch(python, asked.rounds, asked.networks, KINDS[2:] if asked.own else KINDS, options)
    Console().print(watch_table(measured))
    if asked.keep:
        before = read_kept().get(part, {}).get("networks", {})
        keep({part: _merge(before, measured)})


def _merge(before: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was measured, with the earlier figures of networks that were not, in the order of `STEPS`."""
    networks = {**before, **measured["networks"]}
    order = [f"{name}, {processes}" for name in STEPS for processes in RANKS]
    return {**measured, "networks": {label: networks[label] for label in order if label in networks}}


if __name__ == "__main__":
    main()
