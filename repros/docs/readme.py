"""The tables of the README and of pages of `docs`, generated so that a test notices when they are out of date.

`python -m repros.docs.readme` writes each table between its two marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from repros import evidence
from repros.docs import tables
from repros.docs.articles import articles_table, read_articles
from repros.engine.catalogue import Catalogue, load
from repros.stacks import load_stacks

_BEGIN = "<!-- {name}: begin (python -m repros.docs.readme) -->"
_END = "<!-- {name}: end -->"


PAGES = ("README.md", "docs/failures.md", "docs/articles.md")
"""The pages with tables, below the root of the checkout."""


def fill_tables(page: str, catalogue: Catalogue, up: str = "") -> str:
    """Return the page with every table between its marks generated anew.

    Args:
        page: the page's text.
        catalogue: the failures.
        up: the way from the page's folder to the root of the checkout, such as `../`.

    Raises:
        ValueError: The page has the marks of no table.
    """
    stacks, known = [*load_stacks().values()], evidence.read(evidence.FOLDER)
    contents = {
        "failures": tables.failures_table(catalogue, up),
        "taste": tables.taste_table(catalogue, up),
        "stacks": tables.stacks_table(catalogue, stacks, known),
        "costs": tables.costs_table(stacks, known),
    }
    if _BEGIN.format(name="articles") in page:
        contents["articles"] = articles_table(read_articles(), catalogue, known, up)
    marks = {name: (_BEGIN.format(name=name), _END.format(name=name)) for name in contents}
    present = {name: pair for name, pair in marks.items() if all(mark in page for mark in pair)}
    if not present:
        expected = " or ".join(f"{begin!r} and {end!r}" for begin, end in marks.values())
        raise ValueError(f"expected the marks {expected}")
    for name, (begin, end) in present.items():
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}\n{contents[name]}{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    for _page in map(Path, sys.argv[1:] or PAGES):
        _filled = fill_tables(_page.read_text(encoding="utf-8"), load(), "../" * (len(_page.parts) - 1))
        _page.write_text(_filled, encoding="utf-8")
