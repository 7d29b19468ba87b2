"""`repros check`: everything that new scripts need before a pull request, on the stacks that are ready."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

import click

from repros.authoring.check.check import ScriptCheck, StepResult
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import load_catalogue
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.options import catalogue_option, stacks_option
from repros.cli.shared.output import Page, console, show_text
from repros.cli.shared.signals import interrupt_on_signals, interruption_exit_code
from repros.engine import environments
from repros.engine.stacks import load_stacks, stack
from repros.model import CellResult, ExpectedOutcome, Repro
from repros.model.settings import CatalogueLocations
from repros.scripts.bisect.bisection import Bisection
from repros.scripts.bisect.text import describe_outcome
from repros.text.suggest import suggest_signature


@click.command(
    epilog=example(
        "repros check resume_loses_momentum --rules",
        "repros check resume_loses_momentum",
        "repros check RPR-0050 RPR-0051 --stack current --bisect",
    ),
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--rules", is_flag=True, help="Check the rules alone, which takes seconds; no cell runs.")
@stacks_option("Run on this stack, installed if missing; repeatable. Default: all ready stacks.")
@click.option(
    "--bisect/--no-bisect",
    default=None,
    help="Bisect the ends of the affected range, minutes each. Default: ask on a terminal.",
)
@click.option(
    "--skip", multiple=True, metavar="TITLE", help="Leave out a step of the project, such as Tests; repeatable."
)
@catalogue_option
def check(
    ids: tuple[str, ...],
    stacks: tuple[str, ...],
    skip: tuple[str, ...],
    places: CatalogueLocations,
    *,
    rules: bool,
    bisect: bool | None,
) -> int:
    """Check new scripts step by step, and list what is left to do.

    The rules of the catalogue come first, and no cell runs while one is broken. Then every variant runs on its
    reference stack and, if all cells agree there, on the other ready stacks; the evidence of cells that agree is kept.
    The log of a run by hand is captured, and match must find this failure in it. The affected range is compared with
    the evidence, and its ends are bisected on request. Last are the steps that the project adds as
    [[tool.repros.check]] in pyproject.toml.

    Several scripts at once share the import of the libraries.

    Exit code: 0 when nothing is left to do, 1 when something is, 2 when the request is invalid.
    """
    out, catalogue = console(), load_catalogue(places)
    repros = list({repro.id: repro for repro in map(catalogue.find, ids)}.values())
    chosen = [stack(name, places) for name in stacks] or [*filter(environments.ready, load_stacks(places).values())]
    try:
        with interrupt_on_signals():
            to_do = ScriptCheck(catalogue, repros, chosen, _Shown(out, bisect=bisect), skip).run(rules_only=rules)
    except KeyboardInterrupt as interruption:
        return interruption_exit_code(interruption)
    return _conclude(out, repros, to_do, rules_only=rules)


class _Shown:
    """A check, shown on a page as it proceeds."""

    def __init__(self, out: Page, *, bisect: bool | None) -> None:
        self._out = out
        self._bisect = bisect
        """Whether to bisect; None to ask on a terminal."""
        self._cells: LiveReporter | None = None
        """What shows the cells, while they run."""

    def begun(self, title: str) -> None:
        show_text(self._out, f"\n{title}", "bold")

    def report_progress(self, line: str) -> None:
        show_text(self._out, indent(line, "  "), "dim")

    def ended(self, result: StepResult) -> None:
        for sentence in result.to_do:
            show_text(self._out, f"  to do: {sentence}", "red")
        if not result.to_do:
            show_text(self._out, f"  {result.fine}", "green")

    @contextmanager
    def cells(self, results: Path) -> Iterator[LiveReporter]:
        with LiveReporter(self._out, results, append=True, verbose=False) as self._cells:
            yield self._cells
        self._cells.close(interrupted=False, summary=False)

    def finished(self, result: CellResult) -> None:
        if self._cells:
            self._cells.finished(result)

    def failing(self, results: Sequence[CellResult]) -> None:
        for line in suggest_signature(results):
            show_text(self._out, f"  {line}")

    def wants_bisection(self, package: str) -> bool:
        if self._bisect is None and sys.stdin.isatty():
            return click.confirm(f"  bisect {package} now? It takes some minutes", default=True)
        return bool(self._bisect)

    def bisected(self, bisection: Bisection) -> None:
        show_text(self._out, f"  {describe_outcome(bisection)}")


def _conclude(out: Page, repros: Sequence[Repro], to_do: Sequence[str], *, rules_only: bool) -> int:
    names = ", ".join(repro.id for repro in repros)
    if to_do:
        show_text(out, f"\n{names}: {len(to_do)} to do", "bold red")
        return DISAGREES
    variants = [variant for repro in repros for variant in repro.variants]
    fails = sum(variant.outcome is ExpectedOutcome.FAILS for variant in variants)
    left = "no rule is broken" if rules_only else "nothing is left to do"
    show_text(out, f"\n{names}: {left} ({len(variants)} variants, {fails} fail)", "bold green")
    return AGREES
