"""Write the catalogue's figures into `docs/scale.md` and its plot: `python -m tools.bench.scale_table`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.page import fill_part
from repros.text.wording import count
from tools.bench.kept import read_kept
from tools.bench.plot import PlotSeries, draw
from tools.docs.generator import run_generator

PAGE = Path(__file__).parents[2] / "docs/scale.md"
PLOT = PAGE.with_name("scale.svg")


def body(scale: Mapping[str, Any]) -> str:
    """Return the sentences and the tables, from the kept figures."""
    jobs = scale["jobs"]
    return "\n".join(
        [
            _lines(_measured(scale)),
            _machines(scale),
            f"![Times as fast as by hand, by cores; the tables have the numbers]({PLOT.name})\n",
            _lines(_limits(scale)),
            _lines(
                f"The {jobs['cells']} `ddp` cells of these failures, without those of failures that hang, on"
                f" {count(jobs['cores'], 'core')}:"
            ),
            _jobs(jobs),
        ]
    )


def _measured(scale: Mapping[str, Any]) -> str:
    hand, machine = scale["by_hand"], scale["machine"]
    which = "The whole catalogue" if scale["every"] == 1 else f"One failure in {scale['every']} of the catalogue"
    busy = "; other programs used it as well: the seconds mean little, and the plans are for a machine without them"
    busy = busy if machine["busy"] else ""
    disagreed = scale["disagreed"]
    hangs = f"; the {hand['hangs']} that hang as documented count with their deadline" if hand["hangs"] else ""
    return (
        f"{which}, {count(scale['cells'], 'cell')} on stack `{scale['stack']}`, on {scale['at'][:10]}"
        f" ({count(machine['processors'], 'processor')}, {count(scale['rounds'], 'round')}{busy}). By hand, one after"
        f" another with all cores, the cells take {hand['seconds']:.0f} s (standard error"
        f" {hand['standard_error']:.0f} s): {hand['cells']} of them were run, drawn by rule, and each of the others"
        f" counts as the mean of those on its device with as many processes{hangs}. `repros run` ran all of them"
        f"{f', of which {disagreed} did not agree' if disagreed else ''}; its seconds include its start, the probe of"
        " the environment and the warm servers."
    )


def _machines(scale: Mapping[str, Any]) -> str:
    hand = scale["by_hand"]["seconds"]
    rows = [
        "| | Cells | Seconds | Times as fast as by hand | Planned from the evidence | Planned from another run |",
        "|---|---|---|---|---|---|",
    ]
    for row in scale["here"]:
        seconds = row["seconds"]
        plans = [_plan(row[source], seconds) for source in ("from_evidence", "from_run")]
        cells = [count(row["cores"], "core"), scale["cells"], f"{seconds:.0f}", f"{hand / seconds:.1f}", *plans]
        rows.append(_row(cells))
    for row in scale["elsewhere"]:
        ratio = "" if row["gpus"] else f"{hand / row['from_run']:.1f} (planned)"
        cells = [row["name"], row["cells"], "", ratio, f"{row['from_evidence']:.0f}", f"{row['from_run']:.0f}"]
        rows.append(_row(cells))
    return "".join(f"{row}\n" for row in rows)


def _limits(scale: Mapping[str, Any]) -> str:
    runner = scale["here"][-1]["runner"]
    return (
        "A plan is the same schedule, simulated on an inventory: from the seconds in the evidence, like `repros matrix"
        " --dry-run`, or from the seconds of the cells in the run on all cores (for that run, in the run on one core)."
        " Parentheses contain the difference between plan and measurement. A plan considers only cores, memory (4 GiB"
        " for each core) and GPUs. A cluster counts as one machine. Cells on `cuda` have never"
        " been measured: each counts as the median cell, and none was run by hand, so there is no ratio. No machine is"
        f" faster than the longest cell, {scale['longest']:.0f} s; nor than the runner, which is one process and used"
        f" {runner:.0f} processor seconds."
    )


def _jobs(jobs: Mapping[str, Any]) -> str:
    rows = ["| `--jobs` | Seconds | Planned from the evidence | Planned from the run above |", "|---|---|---|---|"]
    for row in jobs["rows"]:
        plans = [_plan(row[source], row["seconds"]) for source in ("from_evidence", "from_run")]
        rows.append(_row([row["jobs"], f"{row['seconds']:.1f}", *plans]))
    return "".join(f"{row}\n" for row in rows)


def _plan(planned: float | None, seconds: float) -> str:
    """Return a plan with its error, as a part of what was measured."""
    if planned is None:
        return ""
    return f"{planned:.0f} ({100 * (planned / seconds - 1):+.0f} %)".replace("-", "\u2212")


def _row(cells: list[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _lines(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def plot(scale: Mapping[str, Any]) -> str:
    """Return the plot: how many times as fast as by hand, by cores, measured and planned."""
    hand, here = scale["by_hand"]["seconds"], scale["here"]
    machines = [*here, *(row for row in scale["elsewhere"] if not row["gpus"])]

    def ratios(rows: list[Mapping[str, Any]], field: str) -> list[tuple[float, float]]:
        return [(row["cores"], hand / row[field]) for row in rows if row[field]]

    return draw(
        "Times as fast as by hand",
        "cores",
        [
            PlotSeries("measured", ratios(here, "seconds"), dots=True),
            PlotSeries("planned from the evidence", ratios(machines, "from_evidence")),
            PlotSeries("planned from another run", ratios(machines, "from_run")),
        ],
    )


def fill(page: str) -> str:
    """Return the page with its part updated."""
    return fill_part(page, "measured", body(read_kept()["scale"]))


if __name__ == "__main__":
    about = "Write the catalogue's figures and plot into docs/scale.md and docs/scale.svg."
    run_generator("tools.bench.scale_table", about, PAGE, fill)
    PLOT.write_text(plot(read_kept()["scale"]), "utf-8")
