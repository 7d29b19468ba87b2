"""The figures of the last runs of `cost`, `storm` and `compare`, and what `docs/scale.md` says of them.

python -m tests.cluster.kept        # writes them into the page
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.page import fill_part
from tools.docs.generator import fill_lines, run_generator

KEPT = Path(__file__).with_name("kept.json")
PAGE = Path(__file__).parents[2] / "docs/scale.md"
COMMAND = "python -m tests.cluster.kept"


def read() -> dict[str, Any]:
    """Return the figures of each program."""
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
    return found


def keep(file: Path, program: str, figures: Mapping[str, Any]) -> None:
    """Write a program's figures into a file, next to those of other programs."""
    others = json.loads(file.read_text("utf-8")) if file.exists() else {}
    surroundings = {"at": str(dt.datetime.now(dt.UTC).date()), "processors": os.cpu_count()}
    text = json.dumps({**others, program: {**surroundings, **figures}}, indent=2, sort_keys=True)
    file.write_text(f"{text}\n", "utf-8")


def cost_text(cost: Mapping[str, Any]) -> str:
    """Return the sentence on what a cell costs."""
    beyond = max(row["on the cluster"] - row["here"] for row in cost["milliseconds"].values())
    one, two = (
        f"{row['on the cluster']:.0f} instead of {row['here']:.0f} ms"
        for row in (cost["milliseconds"][jobs] for jobs in ("1", "2"))
    )
    return fill_lines(
        f"On a cluster of two nodes on one machine with {cost['processors']} processors, a cell costs at most"
        f" {beyond:.0f} ms more than without it: {one} for a cell that ends at once, one at a time, and {two} two at a"
        f" time (`python -m tests.cluster.cost`, {cost['at']}, medians of {cost['rounds']} rounds of {cost['cells']}"
        " cells)."
    )


def compare_text(compare: Mapping[str, Any]) -> str:
    """Return the sentence on the verdicts of real cells."""
    other, infra = compare["other verdicts"], compare["infra at first"]
    return fill_lines(
        f"`repros matrix` gave {'another verdict' if other else 'the same verdict'} on such a cluster as without it"
        f" for {other or 'each'} of {compare['cells']} cells of {compare['repros']} repros on the stacks"
        f" {' and '.join(compare['stacks'])} (`python -m tests.cluster.compare`, {compare['at']}). Measured again"
        f" because they could not be judged at first: {infra['here']} without it,"
        f" {infra['on the cluster']} on it."
    )


def storm_text(storm: Mapping[str, Any]) -> str:
    """Return the sentence on the faults, and on what they led to."""
    faults = "; ".join(f"{name.replace('_', ' ')}: {number}" for name, number in storm["faults"].items())
    results = ", ".join(f"{number} {name}" for name, number in storm["results"].items())
    return fill_lines(
        f"`python -m tests.cluster.storm` ends nodes, workers and drivers of a real cluster of three nodes at random"
        f" while cells run, and checks that no result is lost, no verdict is wrong, and no process or folder is left."
        f" On {storm['at']}, {storm['violations'] or 'none'} of {sum(storm['faults'].values())} faults in"
        f" {storm['runs']} runs violated that ({faults}). {storm['tried again']} cells were run once more; the"
        f" {sum(storm['results'].values())} results were {results}, where `infra` is a cell that was lost twice."
    )


TEXTS = {"cost": cost_text, "compare": compare_text, "storm": storm_text}


def fill(page: str, kept: Mapping[str, Any]) -> str:
    """Return the page with the sentences made anew."""
    for name, text in TEXTS.items():
        page = fill_part(page, name, text(kept[name]))
    return page


if __name__ == "__main__":
    about = "Write what a cluster costs and what was lost on one into docs/scale.md."
    run_generator("tests.cluster.kept", about, PAGE, lambda page: fill(page, read()))
