"""The README's tables, made from the headers and the evidence so that they cannot go stale unnoticed.

`python -m repros.docs.readme README.md` writes each into the place between its two marks.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from repros.engine.catalogue import Catalogue, load
from repros.evidence import files
from repros.matrix import costs, tables
from repros.model import Repro
from repros.model.requirements import format_requirement
from repros.stacks import load_stacks
from repros.text.describe import role

_BEGIN = "<!-- {name}: begin (python -m repros.docs.readme README.md) -->"
_END = "<!-- {name}: end -->"
_THREAD = re.compile(r"https://github\.com/[^/]+/(?P<repository>[^/]+)/(?:issues|pull|discussions)/(?P<number>\d+)")


def table(catalogue: Catalogue) -> str:
    """Return the table in Markdown."""
    heads = ("Id", "Failure", "Affected", "Runs as", "Documented fixes", "Upstream")
    rows = [heads, ("---",) * len(heads), *map(_row, catalogue)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def over_stacks(catalogue: Catalogue) -> str:
    """Return the table of what was measured of each failure on each stack, in Markdown."""
    return tables.table(catalogue, [*load_stacks().values()], files.read())


def of_costs(_: Catalogue) -> str:
    """Return the table of what the matrix costs on each stack, in Markdown."""
    return costs.table([*load_stacks().values()], files.read())


_TABLES: dict[str, Callable[[Catalogue], str]] = {"failures": table, "stacks": over_stacks, "costs": of_costs}


def fill(page: str, catalogue: Catalogue) -> str:
    """Return the page with every table between its marks made anew; a page has the marks of one of them at least."""
    known = {name: (_BEGIN.format(name=name), _END.format(name=name)) for name in _TABLES}
    there = {name: marks for name, marks in known.items() if all(mark in page for mark in marks)}
    if not there:
        wanted = " or ".join(f"{begin!r} and {end!r}" for begin, end in known.values())
        raise ValueError(f"expected the marks {wanted}")
    for name, (begin, end) in there.items():
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}\n{_TABLES[name](catalogue)}{end}{rest.partition(end)[2]}"
    return page


def _row(repro: Repro) -> tuple[str, ...]:
    ranges = ", ".join(f"`{format_requirement(requirement)}`" for requirement in repro.affected)
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
