"""What a search has found, for the terminal."""

from __future__ import annotations

from pathlib import Path

from repros.scripts.reduce.reduction import Reduction
from repros.text.layout import entry
from repros.text.styled import Text
from repros.text.wording import count, relative_to_cwd

_LONGEST = 160
"""Characters of a signature."""


def format_reduction(found: Reduction, output: Path, width: int) -> Text:
    """Return what became of a script, in at most `width` columns."""
    failure = found.failure
    (lines_before, before), (lines_after, after) = found.before, found.after
    part = f", {lines_after / lines_before:.0%} of them" if lines_before else ""
    ranks = f" on {count(found.ranks, 'rank')}" if found.is_launched else ""
    place = next((place for place in failure.places if place != "the script"), "")
    kept = f"output with {' and '.join(map(repr, failure.texts))}" if failure.texts else failure.signature
    kept = kept if len(kept) <= _LONGEST else f"{kept[:_LONGEST]} [...]"
    clean = f", and ends clean on {found.clean_on}" if found.clean_on else ""
    end = "nothing smaller fails alike" if found.is_complete else "the search was not over"
    each = "each forked from a process with the libraries" if found.is_warm else "each with its own imports"
    lines = [Text(f"{lines_before} lines before, {lines_after} after{part}", "bold green")]
    lines += entry("tokens", f"{before} before, {after} after", width)
    lines += entry("keeps", f"{kept}{f' in {place}' if place else ''}{ranks}, on {found.stack}{clean}", width)
    ran = f"{count(found.tried, 'candidate')} run within walls, {each}; {found.refused} refused unrun"
    lines += entry("tried", ran, width)
    lines += entry("time", f"{found.seconds:.0f} s; {end}", width)
    lines += entry("written", str(relative_to_cwd(output)), width)
    return Text("\n").join(lines)
