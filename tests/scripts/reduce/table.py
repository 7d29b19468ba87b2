"""The table of scripts that `repros reduce` made smaller."""

from __future__ import annotations

import statistics
import textwrap
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.scripts.reduce.measure import SCRIPTS, read_figures

_LONGEST = 70
_LONG = 40


def body(figures: Mapping[str, Mapping[str, Any]], unseen: Collection[str]) -> str:
    """Return the medians, what reading the results showed, and the table.

    Args:
        figures: what was measured, by script.
        unseen: the scripts that were drawn when the passes stood.
    """
    rows = sorted(figures.items(), key=lambda item: (not item[1]["public"], item[0]))
    public = {name: row for name, row in figures.items() if row["public"]}
    drawn = [row for name, row in public.items() if name in unseen]
    known = [row for name, row in public.items() if name not in unseen]
    lost = [f"{_thread(row['thread'])}: {row['lost']}" for row in public.values() if row["lost"]]
    own = [row for row in figures.values() if not row["public"]]
    groups = {
        f"public, as posted, at least {_LONG} lines, drawn when the passes stood": drawn,
        "of these, with the reported cause": [row for row in drawn if not row["lost"]],
        "public, as posted, of any length, drawn before": known,
        f"of these, at least {_LONG} lines": [row for row in known if row["lines"][0] >= _LONG],
        f"of this project, after public threads ({_FOLDER})": own,
    }
    summary = ["| Scripts (medians) | Number | Lines | left | Tokens left | Seconds |", "|---" + "|--:" * 5 + "|"]
    summary += [f"| {name} | {_medians(group)} |" for name, group in groups.items() if group]
    read = (
        f"Read afterwards, {len(public) - len(lost)} of the public ones have the cause that was reported, and"
        f" {len(lost)} another ({'; '.join(lost)})."
    )
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
    return "\n".join([*summary, "", textwrap.fill(read, 120, break_on_hyphens=False), "", *lines]) + "\n"


_FOLDER = "[tests/scripts/reduce/toys](../tests/scripts/reduce/toys)"


def _medians(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the cells of a group: how many, their lines, which parts of lines and tokens stay, and seconds."""
    lines, tokens = (statistics.median(row[key][1] / row[key][0] for row in rows) for key in ("lines", "tokens"))
    before = statistics.median(row["lines"][0] for row in rows)
    seconds = statistics.median(row["seconds"] for row in rows)
    return f"{len(rows)} | {before:.0f} | {lines:.0%} | {tokens:.0%} | {seconds:.0f}"


def _thread(address: str) -> str:
    """Return `owner/name#12` for a thread on GitHub."""
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")[:4]
    return f"{owner}/{name}#{number}"


def table() -> str:
    """Return what `repros reduce` made of scripts, from the recorded figures."""
    scripts = tomllib.loads(SCRIPTS.read_text("utf-8"))
    unseen = [name for name, script in scripts.items() if script.get("unseen")]
    return body(read_figures(), unseen)
