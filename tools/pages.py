"""Write all generated parts of the pages: `python -m tools.pages`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

GENERATORS = ("tools.docs.readme", "tools.measure.watch_table", "tools.bench.scale_table")
"""Modules whose parts of pages depend on the catalogue or on `current`."""


def write_pages(root: Path) -> tuple[list[str], list[str]]:
    """Write the generated parts of a checkout's pages, in parallel.

    Returns:
        The names of the pages that changed, and a sentence for each generator that failed.
    """
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", name], cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in GENERATORS
    }
    changed: list[str] = []
    problems: list[str] = []
    for name, process in running.items():
        output, errors = process.communicate()
        changed += [page for page in output.strip().removeprefix("written: ").split(", ") if page.endswith(".md")]
        if process.returncode:
            problems.append(f"fix what stops 'python -m {name}': {errors.strip().rpartition(chr(10))[2]}")
    return changed, problems


def main() -> None:
    """Write the pages that the catalogue decides, for the checkout that is the working directory."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    changed, problems = write_pages(Path())
    sys.stdout.write(f"written: {', '.join(changed)}\n" if changed else "nothing to change\n")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
