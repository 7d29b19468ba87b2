"""Tables of the documentation that grow with the catalogue or with what was measured.

No page of the checkout contains them, so that two branches with a new failure each never conflict in one. A page names
a table in a line of its own, as `python -m tools.tables --marks` prints it; the site shows the table there, or links
to a page with it, and `python -m tools.tables NAME` prints it as Markdown.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from repros.diagnose.messages import load_families
from repros.engine import evidence
from repros.engine.stacks import load_stacks
from repros.model.settings import EVIDENCE
from repros.text import failures
from tests.advise.audit import checked_pins
from tests.diagnose.match import wild_logs
from tests.diagnose.match.hang import public_logs
from tests.diagnose.messages import family_logs
from tests.package_catalogue import load
from tests.sampled import audited_table, scripts_table, unseen_table
from tests.sampled import table as reports_table
from tests.scripts.reduce import table as reduced_table
from tools.docs import articles, messages
from tools.measure import (
    bisect_threads_table,
    compare_pairs,
    compare_table,
    documented_table,
    flight_recorder,
    simulate_table,
    watch_table,
)

_UP = "../"
"""From the folder of the pages, `docs`, to the root of the checkout."""


@dataclass(frozen=True)
class Table:
    """A table with the sentences that introduce it, as Markdown of a page in `docs`."""

    title: str
    body: Callable[[], str]
    """Makes it anew from the catalogue, the evidence and the recorded measurements."""


TABLES: Mapping[str, Table] = {
    "failures": Table("all failures", lambda: failures.failures_table(load(), _UP)),
    "stacks": Table(
        "verdicts of each failure on each stack",
        lambda: failures.stacks_table(load(), [*load_stacks().values()], evidence.read(EVIDENCE)),
    ),
    "costs": Table(
        "cost of each stack", lambda: failures.costs_table([*load_stacks().values()], evidence.read(EVIDENCE))
    ),
    "demand": Table("public reports of each failure", lambda: failures.demand_table(load(), _UP)),
    "articles": Table(
        "statements of the founding articles",
        lambda: articles.articles_table(articles.read_articles(), load(), evidence.read(EVIDENCE), _UP),
    ),
    "audited-entries": Table("audited entries", audited_table.table),
    "audit-pins": Table("public pins", lambda: checked_pins.table(load())),
    "sampled-reports": Table("sampled reports", reports_table.table),
    "sampled-scripts": Table("sampled scripts", scripts_table.table),
    "unseen-reports": Table("answers to unseen reports", unseen_table.table),
    "match-wild": Table("logs from public threads", lambda: wild_logs.table(load())),
    "match-dumps": Table(
        "published dumps of the flight recorder", lambda: flight_recorder.dump_rows(flight_recorder.read_kept())
    ),
    "match-watchdog": Table(
        "public logs with lines of the watchdog", lambda: flight_recorder.log_rows(public_logs.read_public_logs())
    ),
    "messages": Table(
        "messages without a documented failure",
        lambda: messages.families_table(load_families(), family_logs.read_logs()),
    ),
    "compare-pairs": Table("healthy pairs of runs", compare_pairs.table),
    "compare-catalogue": Table("silent failures", compare_table.catalogue),
    "reduce-scripts": Table("reduced scripts", reduced_table.table),
    "bisect-threads": Table("releases that threads name", bisect_threads_table.table),
    "simulate-foreign": Table("foreign programs", lambda: simulate_table.summary(simulate_table.read_lines())),
    "simulate-documented": Table(
        "code that shows the founding five failures",
        lambda: documented_table.summary(documented_table.read_lines(), evidence.read()),
    ),
    "watch-checks": Table("all checks", watch_table.sections),
    "watch-silent": Table("findings in silent failures", lambda: watch_table.table(watch_table.read_measured())),
    "watch-unnamed": Table("silent failures without a check", watch_table.unnamed),
    "watch-errors": Table(
        "findings in failures with an error", lambda: watch_table.loud_table(watch_table.read_measured())
    ),
    "watch-reported": Table("findings in reported errors", watch_table.reported),
    "watch-traincheck": Table("findings in TrainCheck's programs", watch_table.traincheck),
    "watch-foreign": Table("findings in healthy programs", watch_table.foreign),
}

MARK = re.compile(r"^\*Table: (?P<title>.+)\* \(`python -m tools\.tables (?P<name>[\w-]+)`\)$", re.MULTILINE)


def mark(name: str) -> str:
    """Return the line by which a page names a table.

    Raises:
        KeyError: there is no such table.
    """
    return f"*Table: {TABLES[name].title}* (`python -m tools.tables {name}`)"


def main(arguments: list[str]) -> None:
    """Print a table as Markdown, with links as on a page of `docs`."""
    parser = argparse.ArgumentParser(prog="python -m tools.tables", description=main.__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", choices=TABLES, help=f"one of {', '.join(TABLES)}")
    parser.add_argument("--marks", action="store_true", help="print the lines by which pages name the tables")
    chosen = parser.parse_args(arguments)
    if chosen.marks == bool(chosen.name):
        parser.error("expected a NAME or --marks")
    sys.stdout.write("".join(f"{mark(name)}\n" for name in TABLES) if chosen.marks else TABLES[chosen.name].body())


if __name__ == "__main__":
    main(sys.argv[1:])
