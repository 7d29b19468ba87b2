"""The result of a reduction, for the terminal."""

from __future__ import annotations

from pathlib import Path

from repros.scripts.reduce.reduction import Reduction
from repros.text.layout import Paragraphs, Section
from repros.text.wording import count, relative_to_cwd

_LONGEST = 160
"""Characters of a signature."""


def format_reduction(reduction: Reduction, output: Path) -> Section:
    """Return the result of a reduction."""
    failure = reduction.failure
    (lines_before, before), (lines_after, after) = reduction.before, reduction.after
    part = f", {lines_after / lines_before:.0%} of them" if lines_before else ""
    ranks = f" on {count(reduction.ranks, 'rank')}" if reduction.is_launched else ""
    location = next((location for location in failure.locations if location != "the script"), "")
    kept = f"output with {' and '.join(map(repr, failure.texts))}" if failure.texts else failure.signature
    kept = kept if len(kept) <= _LONGEST else f"{kept[:_LONGEST]} [...]"
    clean = f", with a clean exit on {reduction.clean_on}" if reduction.clean_on else ""
    end = "no smaller candidate fails alike" if reduction.is_complete else "the search timed out"
    launch = "forked from a server with the libraries" if reduction.is_warm else "each with its own imports"
    ran = f"{count(reduction.tried, 'candidate')} run in the sandbox, {launch}"
    paragraphs = [
        Paragraphs("tokens", [f"{before} before, {after} after"]),
        Paragraphs("keeps", [f"{kept}{f' in {location}' if location else ''}{ranks}, on {reduction.stack}{clean}"]),
        Paragraphs("tried", [f"{ran}; {reduction.refused} refused without a run"]),
        Paragraphs("time", [f"{reduction.seconds:.0f} s; {end}"]),
        Paragraphs("written", [str(relative_to_cwd(output))]),
    ]
    return Section("", f"{lines_before} lines before, {lines_after} after{part}", paragraphs, "bold green")
