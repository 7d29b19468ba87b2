"""`repros match --confirm`: run the candidates found in a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repros.cli.shared.inputs import choose_interpreter
from repros.cli.shared.live import LiveReporter
from repros.cli.shared.output import console
from repros.cli.shared.signals import interrupt_on_signals
from repros.engine import record
from repros.engine.environment import Targets
from repros.engine.pipeline import run_specs
from repros.engine.plan import Selection, select
from repros.engine.probe import probe
from repros.model import Environment
from repros.model.catalogue import Catalogue

RUNS = Path(".repros/match.jsonl")
"""Results of `repros match --confirm`, separate from those of `repros run`."""


def describe(python: Path) -> Environment:
    """Return the environment of the candidates, with its versions.

    Raises:
        ReprosError: the interpreter is missing or does not respond.
    """
    return probe(choose_interpreter(python), sim=False, needs_torch=False)


def run_candidates(
    catalogue: Catalogue, ids: Sequence[str], python: Path, *, quiet: bool
) -> Sequence[record.RecordLine]:
    """Run the candidates' failing variants on an environment and return the record lines.

    Args:
        catalogue: the catalogue with the candidates.
        ids: ids of the candidates.
        python: the environment's interpreter or folder.
        quiet: show progress on stderr, since stdout has JSON.
    """
    observer = LiveReporter(console(stderr=quiet), RUNS, append=False, verbose=True)
    with observer, interrupt_on_signals():
        where = Targets(python=choose_interpreter(python))
        for result in run_specs(select(catalogue, Selection(tuple(ids), ("failing",))), where, RUNS, observer):
            observer.finished(result)
    observer.close(interrupted=False, summary=False)
    return observer.lines
