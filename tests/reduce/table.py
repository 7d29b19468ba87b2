"""Write what `repros reduce` made of scripts into `docs/own-script.md`: `python -m tests.reduce.table`."""

from __future__ import annotations

import statistics
import textwrap
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.docs.generator import run_generator
from repros.simulated_gpus.tools.page import fill_part
from repros.text.wording import count
from tests.reduce.measure import SCRIPTS, read_figures

PAGE = Path(__file__).parents[2] / "docs/own-script.md"
_LONGEST = 70
_LONG = 40


def body(figures: Mapping[str, Mapping[str, Any]], unseen: Collection[str]) -> str:
    """Return the sentence and the table.

    Args:
        figures: what was measured, by script.
        unseen: the scripts that were drawn when the passes stood.
    """
    rows = sorted(figures.items(), key=lambda item: (not item[1]["public"], item[0]))
    public = {name: row for name, row in figures.items() if row["public"]}
    drawn = [row for name, row in public.items() if name in unseen]
    known = [row for name, row in public.items() if name not in unseen]
    long = [row for row in known if row["lines"][0] >= _LONG]
    lost = [f"{_thread(row['thread'])}: {row['lost']}" for row in public.values() if row["lost"]]
    own = [row for row in figures.values() if not row["public"]]
    sentences = [
        f"Of {count(len(drawn), 'script')} of public issues, as posted, with at least {_LONG} lines, drawn when the",
        f"passes stood, {_parts(drawn)};",
        f"of {len(known)} of any length, drawn before, {_parts(known)},",
        f"and of the {len(long)} of at least {_LONG} lines among these, {_parts(long)};",
        f"of {count(len(own), 'script')} of this project after public threads ({_FOLDER}), {_parts(own)}.",
        f"Read afterwards, {len(public) - len(lost)} of the public ones have the cause that was reported, and",
        f"{len(lost)} another ({'; '.join(lost)}).",
    ]
    lines = ["| After | Keeps | Stack | Lines | left | Tokens | left | Candidates | Seconds |", "|---" * 9 + "|"]
    for name, row in rows:
        where = f", {row['ranks']} ranks" if row["ranks"] > 1 else ""
        where += f"; clean on {row['clean_on']}" if row["clean_on"] else ""
        kept = textwrap.shorten(row["kept"], _LONGEST, placeholder=" ...").replace("|", "\\|").replace("`", "'")
        time = f"{row['seconds']}" if row["complete"] else f"{row['seconds']} (time up)"
        sizes = " | ".join(f"{before} | {after}" for before, after in (row["lines"], row["tokens"]))
        lines.append(
            f"| [{_thread(row['thread'])}]({row['thread']}){'' if row['public'] else f' (`{name}.py`)'} "
            f"| `{kept}` | {row['stack']}{where} | {sizes} | {row['candidates']} | {time} |"
        )
    return "\n".join([textwrap.fill(" ".join(sentences), 120, break_on_hyphens=False), "", *lines]) + "\n"


_FOLDER = "[tests/reduce/toys](../tests/reduce/toys)"


def _parts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how much stays of scripts, on the median."""
    if not rows:
        return "none was measured"
    lines, tokens = (statistics.median(row[key][1] / row[key][0] for row in rows) for key in ("lines", "tokens"))
    before, seconds = (
        statistics.median(row["lines"][0] for row in rows),
        statistics.median(row["seconds"] for row in rows),
    )
    return f"{lines:.0%} of {before:.0f} lines and {tokens:.0%} of the tokens stay, in {seconds:.0f} s (medians)"


def _thread(address: str) -> str:
    """Return `owner/name#12` for a thread on GitHub."""
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")[:4]
    return f"{owner}/{name}#{number}"


def fill(page: str) -> str:
    """Return the page with its part made anew."""
    scripts = tomllib.loads(SCRIPTS.read_text("utf-8"))
    unseen = [name for name, script in scripts.items() if script.get("unseen")]
    return fill_part(page, "reduced", body(read_figures(), unseen))


if __name__ == "__main__":
    about = "Write what repros reduce made of scripts into docs/own-script.md."
    run_generator("tests.reduce.table", about, PAGE, fill)
