"""The pipeline: catalogue -> plan -> run -> judge -> record -> report.

:func:`run_specs` is all of it except the first and the last step. Each step takes and returns plain frozen values of
:mod:`repros.model`:

    select(catalogue, selection)            -> cell specs           repros.engine.plan
    prepare(specs, where)                   -> held environments    repros.engine.environment
    plan(specs, environments)               -> cells                repros.engine.plan
    run_cells(cells): run, then judge       -> results              repros.engine.local, .cells, .launch, .judge
    append(file, result)                    -> a record line        repros.engine.record

Of several stacks, each is prepared while cells of others run (:mod:`repros.engine.preparation`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path

from repros.engine import record
from repros.engine.environment import Targets
from repros.engine.local import HERE
from repros.engine.plan import CellSpec
from repros.engine.run_options import DEFAULT_OPTIONS, Observer, RunOptions
from repros.model import CellResult


def run_specs(
    specs: Sequence[CellSpec],
    targets: Targets,
    out: Path,
    observer: Observer,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Generator[CellResult, None, None]:
    """Run cell specs and yield each result as soon as it is recorded.

    Args:
        specs: the result of :func:`repros.engine.plan.select`.
        targets: the environments; missing ones are made.
        out: the results file (JSON Lines) to append to; logs go to a new folder of `.repros/runs`.
        observer: receives everything that is not a result.
        options: how to run the cells.

    Raises:
        ReprosError: a required device or an environment does not exist.
    """
    engine = options.engine or HERE
    with contextlib.closing(engine.run(specs, targets, out, observer, options)) as results:
        for result in results:
            try:
                record.append(out, result)
            except record.NotRecordedError as error:
                observer.unrecorded(error)
            yield result
