"""The README's table of failures, made from the headers so that it cannot go stale unnoticed.

`python -m repros.report.catalogue README.md` writes it into the place between the two marks.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from repros.model import Repro
from repros.report.describe import role
from repros.report.spoken import spoken
from repros.shelf import Shelf, load

_BEGIN = "<!-- failures: begin (python -m repros.report.catalogue README.md) -->"
_END = "<!-- failures: end -->"
_THREAD = re.compile(r"https://github\.com/[^/]+/(?P<repository>[^/]+)/(?:issues|pull|discussions)/(?P<number>\d+)")


def table(shelf: Shelf) -> str:
    """Return the table in Markdown."""
    heads = ("Id", "Failure", "Affected", "Runs as", "Documented fixes", "Upstream")
    rows = [heads, ("---",) * len(heads), *map(_row, shelf)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def fill(page: str, shelf: Shelf) -> str:
    """Return the page with the table between its marks made anew."""
    head, mark, rest = page.partition(_BEGIN)
    _, closing, tail = rest.partition(_END)
    if not (mark and closing):
        raise ValueError(f"expected the marks {_BEGIN!r} and {_END!r}")
    return f"{head}{mark}\n{table(shelf)}{closing}{tail}"


def _row(repro: Repro) -> tuple[str, ...]:
    ranges = ", ".join(f"`{spoken(requirement)}`" for requirement in repro.affected)
    roles = Counter(role(variant) for variant in repro.variants)
    verbs = {"works": ("works", "work"), "does not fix": ("does not", "do not")}
    fixes = [f"{roles[kind]} {verb[roles[kind] > 1]}" for kind, verb in verbs.items() if roles[kind]]
    return (
        f"[{repro.id}](repros/catalogue/{repro.family}/{repro.path.name})",
        repro.title.replace("|", r"\|") + (" (silent)" if repro.silent else ""),
        ranges or f"every release of {', '.join(repro.packages)}",
        f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}",
        ", ".join(fixes),
        ", ".join(_links(repro.upstream)),
    )


def _links(urls: Iterable[str]) -> Iterator[str]:
    """Link every thread by its number; the repository is named once for all of its threads."""
    said = None
    for url in urls:
        thread = _THREAD.match(url)
        if thread is None:
            yield f"<{url}>"
            continue
        name = "" if thread["repository"] == said else f"{thread['repository']} "
        said = thread["repository"]
        yield f"[{name}#{thread['number']}]({url})"


if __name__ == "__main__":
    _page = Path(sys.argv[1])
    _page.write_text(fill(_page.read_text(encoding="utf-8"), load()), encoding="utf-8")
