"""`repros compare`: the first step and location at which two runs of a training diverge."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.inputs import find_interpreter
from repros.cli.shared.options import catalogue_option, json_option, program_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo_json
from repros.diagnose.compare.inside.request import Request
from repros.diagnose.compare.json_format import result_to_json
from repros.diagnose.compare.launch import ProgramCommand, split_commands
from repros.diagnose.compare.recording import Recording, record
from repros.diagnose.compare.rerun import compare_equal_batches
from repros.diagnose.compare.run import CompareResult
from repros.diagnose.compare.text import format_result, format_runs
from repros.diagnose.watch.session import SessionOptions, event_folder
from repros.engine.environments import ensure
from repros.engine.environments.use import hold
from repros.engine.own_folder import new_log_folder
from repros.engine.stacks import load_stacks, pick
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations
from repros.simulate import variables

_LOGS = Path(".repros/compare.jsonl")
"""Path of a results file, next to which the programs' logs are written."""
_NAMES = ("first", "second")


def _two(_: click.Context, option: click.Parameter, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    words = text.split(",")
    if len(words) != 2 or not all(words):  # noqa: PLR2004 - one for each run
        raise ReprosError(f"--{option.name} {text}: expected two values, such as {option.metavar}.")
    return words[0], words[1]


def _two_numbers(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    words = _two(context, option, text)
    if words is None:
        return None
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ReprosError(f"--{option.name} {text}: expected two numbers of ranks, such as {option.metavar}.")
    return int(words[0]), int(words[1])


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "repros compare -- python train.py -- python train.py --accumulate 4",
        "repros compare --ranks 1,2 -- python train.py",
        "repros compare --resume-at 100 -- python train.py -- python train.py --resume last.ckpt",
    ),
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [-- COMMAND]")
@click.option(
    "--ranks", callback=_two_numbers, metavar="1,2", help="Number of ranks of each run, launched by torchrun."
)
@click.option("--stack", callback=_two, metavar="A,B", help="Stack of each run.")
@click.option(
    "--resume-at",
    "offset",
    type=click.IntRange(0),
    default=0,
    metavar="K",
    help="Align the second run's first step with the first run's step K+1.",
)
@click.option("--exact", is_flag=True, help="Require bitwise equality.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed both programs at their start; they may reseed.")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Compare at most N steps.")
@program_option
@click.option("--gpus", type=int, metavar="N", help="Run on N simulated GPUs, like `repros simulate`.")
@json_option
@catalogue_option
def compare(
    words: tuple[str, ...],
    ranks: tuple[int, int] | None,
    stack: tuple[str, str] | None,
    offset: int,
    seed: int | None,
    steps: int | None,
    python: Path | None,
    gpus: int | None,
    places: CatalogueLocations,
    *,
    exact: bool,
    as_json: bool,
) -> int:
    """Run a training twice, unchanged, and report the first step and location at which the runs diverge.

    The first run is the reference. Batches, hyperparameters, parameters, optimizer state, module outputs, losses
    and gradients are compared step by step, from cause to effect, as are evaluations between steps and the final
    state. Losses and gradients of several ranks or accumulated passes are reduced to those of the whole batch
    first. If nothing else differs, values that the program takes off a tensor are compared, such as a metric's
    `.item()`. A single COMMAND is run twice. Nothing is installed into its environment.

    Rounding differences within the printed tolerance of the number format are ignored, unless --exact is given.

    Exit code: 0 if the runs are equal, 1 if they diverge, 2 if the request cannot be met or nothing can be compared.
    """
    if stack is not None and python is not None:
        raise click.UsageError("--stack and --python exclude each other: a stack brings its own interpreter.")
    chosen = find_interpreter(python) if python is not None else None
    programs = [ProgramCommand(command, chosen) for command in split_commands(words)]
    options = SessionOptions(every=1, simulated=variables(gpus) if gpus is not None else {})
    logs = new_log_folder(_LOGS)
    with contextlib.ExitStack() as folders:
        pythons = folders.enter_context(_interpreters(stack, places))

        def run(place: int, factor: int = 1) -> Recording:
            program = programs[place]
            started = program if pythons is None else program.with_python(pythons[place])
            started = started if ranks is None else started.on_ranks(ranks[place])
            request = Request(None if steps is None else steps + (offset if place == 0 else 0), seed, factor)
            folder = folders.enter_context(event_folder())
            name = _NAMES[place] if factor == 1 else f"{_NAMES[place]}_repeated"
            return _record(started, options, request, folder, logs / f"{name}.log")

        runs = run(0), run(1)
        try:
            result = compare_equal_batches(runs, run, ranks, offset=offset, exact=exact)
        except ReprosError as error:
            raise ReprosError(f"{str(error).rstrip('.')}; what the programs wrote is in {logs}.") from error
    return _show(result, (runs[0].code, runs[1].code), as_json=as_json)


@contextlib.contextmanager
def _interpreters(names: tuple[str, str] | None, places: CatalogueLocations) -> Iterator[list[Path] | None]:
    """Yield the interpreters of two stacks, which are made if they are missing; None for none."""
    if names is None:
        yield None
        return
    known = load_stacks(places)
    stacks = [pick(known, name) for name in names]
    err = console(stderr=True)
    with hold(stacks):
        yield [ensure(stack, lambda line: show_text(err, line)) for stack in stacks]


def _record(program: ProgramCommand, options: SessionOptions, request: Request, folder: Path, log: Path) -> Recording:
    """Run a program and return its recording, which is whole: what is missing may be what differs.

    Raises:
        ReprosError: something is missing.
    """
    name = log.stem
    show_text(console(stderr=True), f"{name} run: {shlex.join(program.command)}")
    run = record(program.command, replace(options, python=program.python), request, folder, log)
    if run.failures:
        raise ReprosError(f"the recording of the {name} run failed in {run.failures[0]}; please report it.")
    if not run.is_complete:
        problem = f"the {name} run could not write all events (is the disk full?); set TMPDIR to a folder with room."
        raise ReprosError(problem)
    if not any(folder.glob("*.jsonl")):
        why = "python -I, -E or -S, Python older than 3.9, or no Python at all"
        raise ReprosError(f"no process of the {name} run loaded the recorder ({why}); its output is in {log}.")
    return run


def _show(result: CompareResult, exits: tuple[int, int], *, as_json: bool) -> int:
    """Show a result and return the exit code."""
    for line in format_runs(_NAMES, exits):
        show_text(console(stderr=True), line, "yellow")
    if as_json:
        echo_json(result_to_json(result, exits))
    else:
        out = console()
        show_text(out, format_result(result, out.width))
    return AGREES if result.difference is None else DISAGREES
