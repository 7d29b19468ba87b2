"""Write the parts of a page about random numbers: `python -m repros.simulated_gpus.tools.random_numbers PAGE`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from repros.simulated_gpus.tools.page import fill_part
from repros.simulated_gpus.tools.random_numbers.data import read_operators, read_published


def operators_part() -> str:
    """Return the table of the operators that draw CUDA's numbers, and a sentence on the others."""
    operators = read_operators()
    lines = ["| Draws CUDA's numbers | |", "|---|---|"]
    for row in operators["cuda"]:
        names = dict.fromkeys(name.partition(".")[0] for name in row["operators"])
        lines.append(f"| {row['kind']} | {', '.join(f'`{name}`' for name in names)}, and so {row['and_so']} |")
    others = ", ".join(f"`{name}`" for name in operators["host"])
    sentence = (
        f"The other operators ({others}) and dropout inside recurrent layers draw numbers of the host, determined by"
        " the generator's seed and offset."
    )
    return "\n".join([*lines, "", textwrap.fill(sentence, 140, break_on_hyphens=False), ""])


def published_part() -> str:
    """Return the table of the published numbers."""
    lines = ["| Source | Drawn | Seed | On | Numbers |", "|---|---|--:|---|--:|"]
    for row in read_published():
        link = f"[{row['source']}]({row['address']})"
        cells = [link, f"`{row['drawn']}`", str(row["seed"]), row.get("gpu", ""), str(len(row["numbers"]))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def fill_page(text: str) -> str:
    """Return a page with the current parts between its markers."""
    return fill_part(fill_part(text, "random operators", operators_part()), "published numbers", published_part())


def main() -> None:
    """Update the parts on a page."""
    page = Path(sys.argv[1])
    page.write_text(fill_page(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
