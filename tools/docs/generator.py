"""Command line of a generator of a page's parts."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

_WIDTH = 120


def run_generator(module: str, description: str, page: Path, fill: Callable[[str], str]) -> None:
    """Update a page's generated parts, and print whether they changed.

    Args:
        module: name of the generator's module.
        description: description of the generated parts, in a sentence.
        page: an existing page.
        fill: returns the page's text with updated parts.
    """
    argparse.ArgumentParser(prog=f"python -m {module}", description=description).parse_args()
    before = page.read_text(encoding="utf-8")
    after = fill(before)
    if after != before:
        page.write_text(after, encoding="utf-8")
    sys.stdout.write(f"written: {page.name}\n" if after != before else "nothing to change\n")


def fill_lines(sentence: str) -> str:
    """Return a sentence as lines of a page."""
    return textwrap.fill(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
