"""What every generator of a part of a page does on the command line: `--help`, and a line on what it wrote."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def run_generator(module: str, description: str, page: Path, fill: Callable[[str], str]) -> None:
    """Write a page's generated parts anew, and say whether they changed.

    Args:
        module: the generator, as `python -m` takes it.
        description: what it writes, in a sentence.
        page: the page, which exists.
        fill: returns the page's text with its generated parts made anew.
    """
    argparse.ArgumentParser(prog=f"python -m {module}", description=description).parse_args()
    before = page.read_text(encoding="utf-8")
    after = fill(before)
    if after != before:
        page.write_text(after, encoding="utf-8")
    sys.stdout.write(f"written: {page.name}\n" if after != before else "nothing to change\n")
