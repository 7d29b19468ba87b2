"""The README's table: `python -m tools.docs.readme` writes it.

It shows ten failures that never change; `tools/tables.py` has the tables that grow with the catalogue.
"""

from __future__ import annotations

from pathlib import Path

from repros.engine.catalogue import load
from repros.simulated_gpus.tools.page import fill_part
from repros.text import failures
from tools.docs.generator import run_generator

PAGE = Path(__file__).parents[2] / "README.md"


def fill(page: str) -> str:
    """Return the text of the README with the table of the headers.

    Raises:
        ValueError: it lacks the markers of the table.
    """
    return fill_part(page, "taste", failures.frequent_table(load()))


if __name__ == "__main__":
    run_generator("tools.docs.readme", "Write the table of frequent failures.", PAGE, fill)
