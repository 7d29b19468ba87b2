"""Write what one release of a bisection costs into `docs/usage.md`: `python -m tools.bench.bisected_table`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.page import fill_part
from repros.text.wording import count
from tools.bench.bisected import STEPS
from tools.bench.kept import read_kept
from tools.docs.generator import run_generator

PAGE = Path(__file__).parents[2] / "docs/usage.md"


def body(kept: Mapping[str, Any]) -> str:
    """Return the sentence and the table, from the kept figures."""
    busy = " that other programs used as well" if kept["machine"]["busy"] else ""
    sentence = (
        f"Processor seconds for one release of {kept['package']} on the stack `{kept['stack']}` ({kept['repro']},"
        f" {kept['at'][:10]}, wheels in uv's cache, on {count(kept['machine']['processors'], 'core')}{busy}):"
    )
    rows = [f"| Release | {' | '.join(STEPS)} | in all |", "|---" * (len(STEPS) + 2) + "|"]
    for release in kept["releases"]:
        seconds = release["processor"]
        name = release["version"]
        name += (
            f", with {count(release['others'], 'package')} that the stack does not have" if release["others"] else ""
        )
        cells = [f"{seconds[step]:.1f}" for step in STEPS]
        rows.append(f"| {name} | {' | '.join(cells)} | {sum(seconds.values()):.1f} |")
    return "\n".join([textwrap.fill(sentence, 120), "", *rows]) + "\n"


def fill(page: str) -> str:
    """Return the page with its part updated."""
    return fill_part(page, "bisected", body(read_kept()["bisected"]))


if __name__ == "__main__":
    about = "Write what one release of a bisection costs into docs/usage.md."
    run_generator("tools.bench.bisected_table", about, PAGE, fill)
