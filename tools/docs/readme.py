"""The generated parts of the README and of docs/failures.md: `python -m tools.docs.readme` writes them.

The README shows ten failures that never change; `tools/tables.py` has the tables that grow with the catalogue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from repros.engine.catalogue import load
from repros.simulated_gpus.tools.page import fill_part
from repros.text import failures
from tools.docs.kept import BENCH, CHAOS, faults_sentence, read_kept_run, speed_sentence

PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"taste": lambda: failures.frequent_table(load())},
    "docs/failures.md": {
        "speed": lambda: speed_sentence(read_kept_run(BENCH)),
        "faults": lambda: faults_sentence(read_kept_run(CHAOS)),
    },
}
"""Generators by page and part; pages are relative to the root of the checkout."""


def fill(name: str, page: str) -> str:
    """Return the text of a page of `PARTS` with updated parts.

    Raises:
        ValueError: the page lacks the markers of a part.
    """
    for part, make in PARTS[name].items():
        page = fill_part(page, part, make())
    return page


def main() -> None:
    """Write the generated parts of the README and of docs/failures.md."""
    argparse.ArgumentParser(prog="python -m tools.docs.readme", description=main.__doc__).parse_args()
    changed = []
    for name in PARTS:
        before = Path(name).read_text(encoding="utf-8")
        after = fill(name, before)
        if after != before:
            Path(name).write_text(after, encoding="utf-8")
            changed.append(name)
    sys.stdout.write(f"written: {', '.join(changed)}\n" if changed else "nothing to change\n")


if __name__ == "__main__":
    main()
