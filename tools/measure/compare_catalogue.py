"""Compare the failing variant of each silent failure of the catalogue with its fixed one, by `repros compare`.

    python -m tools.measure.compare_catalogue record FOLDER [--stack current] [RPR-0005 ...]

records both variants of each on a stack into folders below FOLDER, a failure that the stack does not have
on its reference stack; those that are there are left as they are.

    python -m tools.measure.compare_catalogue compare FOLDER [--keep] [RPR-0005 ...]

compares what is there, the fixed variant as the reference, and prints a line of JSON for each. `--keep` writes the
lines into `tests/diagnose/compare/catalogue.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from repros.diagnose.compare.inside.request import Request
from repros.diagnose.compare.recording import Recording, record
from repros.diagnose.compare.run import compare
from repros.diagnose.watch.session import SessionOptions
from repros.engine import catalogue
from repros.engine.environments import ensure
from repros.engine.stacks import stack
from repros.model import ExpectedOutcome, Repro, Variant
from repros.model.errors import ReprosError
from repros.simulated_gpus.tests.warm_python import warm_python
from tools.measure.watch_catalogue import BYTECODE, program_of, runs_of

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/diagnose/compare/catalogue.jsonl"
STEPS = 40
"""Recorded of each process."""
DEADLINE = 1500
"""Timeout of a run in seconds, generous for busy machines."""
ENDING = "ending.json"
HEAVY = {"lightning", "fabric", "metrics", "accelerate", "transformers", "peft", "trl", "datasets"}
"""The families whose scripts import more than torch."""
TORCH = ("torch", "torch._dynamo")
LIBRARIES = (
    "lightning",
    "lightning.pytorch",
    "torchmetrics",
    "accelerate",
    "transformers",
    "transformers.trainer",
    "peft",
)


class SilentFailure(NamedTuple):
    """A silent failure with the variant that fails and the first documented fix, on a stack that has it."""

    repro: Repro
    failing: Variant
    fixed: Variant
    stack: str


def failures_of(stack_name: str, ids: list[str]) -> Iterator[SilentFailure]:
    """Yield the silent failures of the stack, and the others on their reference stacks."""
    repros = [repro for repro in catalogue.load() if repro.silent and (not ids or repro.id in ids)]
    there = list(_failures_on(stack_name, repros))
    yield from there
    ids_there = {failure.repro.id for failure in there}
    yield from _failures_on("home", [repro for repro in repros if repro.id not in ids_there])


def _failures_on(stack_name: str, repros: list[Repro]) -> Iterator[SilentFailure]:
    runs = list(runs_of(repros, [stack_name]))
    for repro in repros:
        mine = [run for run in runs if run.repro.id == repro.id]
        failing = [run.variant for run in mine if run.fails]
        fixed = [
            run.variant for run in mine if run.variant.outcome is ExpectedOutcome.PASSES and not run.variant.contrast
        ]
        if failing and fixed:
            yield SilentFailure(repro, failing[0], fixed[0], mine[0].stack)


def record_variant(repro: Repro, variant: Variant, pythons: tuple[Path, Path], folder: Path) -> None:
    """Record a variant into a folder, unless it is there.

    Args:
        repro: whose script runs.
        variant: which variant of it.
        pythons: an interpreter for scripts that need no device, and one for those that need simulated GPUs.
        folder: for the recording.
    """
    if (folder / ENDING).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    script, environ = program_of(repro, variant)
    python = pythons["REPROS_SIM" in environ]
    begun, here = time.monotonic(), Path.cwd()
    with mock.patch.dict(os.environ, environ, clear=True):
        os.chdir(folder / "work")
        try:
            command = ["timeout", str(DEADLINE), str(python), *script]
            made = record(command, SessionOptions(every=1), Request(STEPS, 0), folder, folder / "output.log")
        finally:
            os.chdir(here)
    shutil.rmtree(folder / "work", ignore_errors=True)
    ending = {"code": made.code, "failures": made.failures, "whole": made.is_complete}
    (folder / ENDING).write_text(json.dumps({**ending, "seconds": round(time.monotonic() - begun, 1)}))


def record_all(failures: list[SilentFailure], python: Path, folder: Path) -> None:
    """Record both variants of each failure, one after another, where torch and the libraries are imported once."""
    heavy = [failure for failure in failures if failure.repro.path.parent.name in HEAVY]
    light = [failure for failure in failures if failure not in heavy]
    alone, several = (
        [failure for failure in light if (failure.repro.processes > 1) is has_ranks] for has_ranks in (False, True)
    )
    # The quick ones first; ranks import torch themselves.
    heavy.sort(key=lambda failure: failure.repro.processes)
    [packages] = python.parents[1].glob("lib/python3*/site-packages")
    libraries = tuple(name for name in LIBRARIES if (packages / name.partition(".")[0]).is_dir())
    for chosen, modules in ((alone, TORCH), (heavy, TORCH + libraries), (several, TORCH)):
        if not chosen:
            continue
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("REPROS_", "PYTHON"))}
        environ = kept | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        options = ("-I", "-O", "-X", f"pycache_prefix={BYTECODE}")
        with (
            tempfile.TemporaryDirectory() as place,
            warm_python(python, Path(place), environ, *modules, options=options) as warm,
        ):
            for repro, failing, fixed, _ in chosen:
                for variant in (failing, fixed):
                    record_variant(repro, variant, (warm, python), folder / repro.id / variant.name)
                    ending = (folder / repro.id / variant.name / ENDING).read_text()
                    print(repro.id, variant.name, ending, flush=True)


def load(folder: Path) -> Recording:
    """Return what `record_variant` has left."""
    ending = json.loads((folder / ENDING).read_text())
    return Recording(folder, ending["code"], tuple(ending["failures"]), ending["whole"])


def compare_variants(failure: SilentFailure, folder: Path) -> dict[str, Any]:
    """Return the comparison of the two recordings of a failure."""
    repro, failing, fixed, stack_name = failure
    runs = [load(folder / repro.id / variant.name) for variant in (fixed, failing)]
    line: dict[str, Any] = {"repro": repro.id, "stack": stack_name, "fixed": fixed.name, "failing": failing.name}
    line["exits"] = [run.code for run in runs]
    line["failures"] = [failure for run in runs for failure in run.failures]
    try:
        result = compare(*runs)
    except ReprosError as error:
        return {**line, "status": "nothing to compare", "reason": str(error)}
    found = result.difference
    line |= {"status": "equal" if found is None else "different", "steps": result.steps}
    line["evaluations"] = result.evaluations
    if found is not None and result.at is not None:
        line |= {"where": result.at.where(), "notes": result.notes}
        line |= {"stage": found.stage, "text": found.text, "values": found.values, "rank": found.rank}
        line |= {"relative": found.relative, "equal": result.equal}
    return line


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stack", default="current")
    parser.add_argument(
        "--keep", action="store_true", help="write the lines into tests/diagnose/compare/catalogue.jsonl"
    )
    parser.add_argument("repros", nargs="*")
    asked = parser.parse_args()
    failures = list(failures_of(asked.stack, asked.repros))
    if asked.action == "compare":
        there = [
            failure
            for failure in failures
            if all(
                (asked.folder / failure.repro.id / v.name / ENDING).exists() for v in (failure.failing, failure.fixed)
            )
        ]
        lines = [compare_variants(failure, asked.folder) for failure in there]
        text = "".join(f"{json.dumps(line)}\n" for line in sorted(lines, key=lambda line: line["repro"]))
        print(text, end="")
        if asked.keep:
            KEPT.write_text(text, "utf-8")
        return
    for name in dict.fromkeys(failure.stack for failure in failures):
        python = ensure(stack(name), lambda line: print(line, file=sys.stderr))
        record_all([failure for failure in failures if failure.stack == name], python, asked.folder.absolute())


if __name__ == "__main__":
    main()
