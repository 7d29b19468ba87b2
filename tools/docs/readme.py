"""The tables of the README and of pages of `docs`, generated so that a test notices when they are out of date.

`python -m tools.docs.readme` writes each table between its two marks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.stacks import load_stacks
from repros.model.catalogue import Catalogue
from repros.model.settings import EVIDENCE
from repros.text import failures as tables
from tools.docs.articles import articles_table, read_articles
from tools.docs.kept import BENCH, CHAOS, faults_sentence, read_kept_run, speed_sentence

_BEGIN = "<!-- {name}: begin (python -m tools.docs.readme) -->"
_END = "<!-- {name}: end -->"


PAGES = ("README.md", "docs/failures.md", "docs/demand.md", "docs/articles.md")
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
    stacks, known = [*load_stacks().values()], evidence.read(EVIDENCE)
    contents = {
        "failures": tables.failures_table(catalogue, up),
        "demand": tables.demand_table(catalogue, up),
        "taste": tables.taste_table(catalogue, up),
        "stacks": tables.stacks_table(catalogue, stacks, known),
        "costs": tables.costs_table(stacks, known),
    }
    if _BEGIN.format(name="articles") in page:
        contents["articles"] = articles_table(read_articles(), catalogue, known, up)
    if _BEGIN.format(name="faults") in page:
        contents["faults"] = faults_sentence(read_kept_run(CHAOS))
    if _BEGIN.format(name="speed") in page:
        contents["speed"] = speed_sentence(read_kept_run(BENCH))
    marks = {name: (_BEGIN.format(name=name), _END.format(name=name)) for name in contents}
    present = {name: pair for name, pair in marks.items() if all(mark in page for mark in pair)}
    if not present:
        expected = " or ".join(f"{begin!r} and {end!r}" for begin, end in marks.values())
        raise ValueError(f"expected the marks {expected}")
    for name, (begin, end) in present.items():
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}\n{contents[name]}{end}{rest.partition(end)[2]}"
    return page


def write_pages(root: Path, catalogue: Catalogue, names: Sequence[str] = PAGES) -> list[str]:
    """Write the tables of a checkout's pages, and return the names of those that changed.

    Raises:
        OSError: a page cannot be read or written.
        ValueError: a page has the marks of no table.
    """
    changed = []
    for name in names:
        page = root / name
        before = page.read_text(encoding="utf-8")
        after = fill_tables(before, catalogue, "../" * (len(Path(name).parts) - 1))
        if after != before:
            page.write_text(after, encoding="utf-8")
            changed.append(name)
    return changed


def main(arguments: Sequence[str]) -> None:
    """Write the tables of the README and of docs/failures.md between their marks."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.readme", description=main.__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"a page with the marks; default: {', '.join(PAGES)}")
    pages = parser.parse_args(arguments).pages
    try:
        changed = write_pages(Path(), load(), tuple(pages) or PAGES)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    sys.stdout.write(f"written: {', '.join(changed)}\n" if changed else "nothing to change\n")


if __name__ == "__main__":
    main(sys.argv[1:])
