"""Write what `repros reduce` made of scripts into `docs/own-script.md`: `python -m tests.reduce.table`."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.docs.generator import run_generator
from repros.simulated_gpus.tools.page import fill_part
from repros.text.wording import count
from tests.reduce.measure import read_figures

PAGE = Path(__file__).parents[2] / "docs/own-script.md"
_LONGEST = 70


def body(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sentence and the table."""
    rows = sorted(figures.items(), key=lambda item: (item[1]["public"], item[0]))
    parts = [row["after"] / row["before"] for _, row in rows]
    public = sum(row["public"] for _, row in rows)
    seconds = statistics.median(row["seconds"] for _, row in rows)
    sentence = (
        f"On the median {statistics.median(parts):.0%} of the lines stay, in {seconds:.0f} s on two busy cores. "
        f"Measured so far: {count(len(rows) - public, 'script')} of this project after public threads ({_FOLDER}), and "
        f"{count(public, 'code block')} of public issues as posted."
    )
    lines = ["| After | Keeps | Stack | Lines | after | Candidates | Seconds |", "|---" * 7 + "|"]
    for name, row in rows:
        ranks = f", {row['ranks']} ranks" if row["ranks"] > 1 else ""
        kept = textwrap.shorten(row["kept"], _LONGEST, placeholder=" ...").replace("|", "\\|").replace("`", "'")
        time = f"{row['seconds']}" if row["complete"] else f"{row['seconds']} (time up)"
        lines.append(
            f"| [{_thread(row['thread'])}]({row['thread']}){', as posted' if row['public'] else f' (`{name}.py`)'} "
            f"| `{kept}` | {row['stack']}{ranks} | {row['before']} | {row['after']} | {row['candidates']} | {time} |"
        )
    return "\n".join([textwrap.fill(sentence, 120, break_on_hyphens=False), "", *lines]) + "\n"


_FOLDER = "[tests/reduce/toys](../tests/reduce/toys)"


def _thread(address: str) -> str:
    """Return `owner/name#12` for a thread on GitHub."""
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")[:4]
    return f"{owner}/{name}#{number}"


def fill(page: str) -> str:
    """Return the page with its part made anew."""
    return fill_part(page, "reduced", body(read_figures()))


if __name__ == "__main__":
    about = "Write what repros reduce made of scripts into docs/own-script.md."
    run_generator("tests.reduce.table", about, PAGE, fill)
