"""The explanation of a disagreeing cell: the expectation, the ending of each rank, and the logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import assert_never

from repros.engine.launch import logs
from repros.model import Cell, CellResult, Ending, ExpectedOutcome, Observation, Process, Raised, Role
from repros.model.affected import affected_text, packages_of
from repros.model.observation import path_in_package
from repros.text.layout import label_lines
from repros.text.wording import count, relative_to_cwd

_LOG_LINES = 15
_SHOWN_RECORDS = 3
_WAITING_FRAMES = 6
_MOST_LINKS = 5
_LONGEST_MESSAGE = 400

_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\S+) in (?P<name>.+)$', re.MULTILINE)
_VIA = {"cause": "caused by", "context": "while handling", "group": "one of"}


def explain(result: CellResult) -> str:
    """Return the explanation of a cell's verdict."""
    cell = result.cell
    lines = [f"{cell.label}: {result.verdict}", f"  {result.reason}", ""]
    lines += _entry("title", [cell.repro.title])
    lines += _entry("script", [str(relative_to_cwd(cell.repro.path))])
    lines += _entry("expected", _expected_lines(cell))
    if result.observation is not None:
        lines += _entry("observed", _observed_lines(cell, result.observation))
        lines += _log_lines(result.observation)
        lines += _entry("all logs", [str(relative_to_cwd(result.observation.folder))])
    lines += _entry("again", [_rerun_command(cell)])
    return "\n".join(lines)


def _entry(label: str, lines: Iterable[str]) -> Iterator[str]:
    return (line.plain.rstrip() for line in label_lines(label, lines))


def _rerun_command(cell: Cell) -> str:
    """Return the command that runs this cell alone."""
    environment = cell.environment
    option = "--stack" if environment.stack else "--python"
    words = ["repros", "run", cell.repro.id, "--variant", cell.variant.name, "--strategy", cell.strategy]
    words += ["--device", cell.device.value, option, environment.name]
    return shlex.join([*words, *cell.repro.origin.words])


def _expected_lines(cell: Cell) -> list[str]:
    """Return the documented outcome for the installed versions."""
    expectation, variant = cell.expectation, cell.variant
    ranges = affected_text(variant.affected)
    installed = cell.environment.versions
    names = dict.fromkeys(["torch", *packages_of(variant.affected), *cell.repro.packages])
    here = ", ".join(f"{name} {installed[name]}" for name in names if name in installed)
    if expectation.outcome is ExpectedOutcome.FAILS:
        expected = [f"fails with {expectation.signature}", f"affected: {ranges}; here: {here}"]
    elif expectation.is_fix:
        is_contrast = variant.role is Role.CONTRAST
        reason = "the failure does not occur under its conditions" if is_contrast else "this variant is a fix"
        expected = [f"returns, since {reason}", f"affected without it: {ranges}; here: {here}"]
    else:
        expected = ["returns, since these versions are not affected", f"affected: {ranges}; here: {here}"]
    return [*expected, f"variant: {variant.about}"]


def _observed_lines(cell: Cell, observation: Observation) -> list[str]:
    ranks = list(observation.ranks)
    numbered = sum(process.rank is not None for process in ranks)
    seconds = f"{observation.seconds:.1f} s (deadline {cell.repro.deadline:g} s)"
    lines = [f"{numbered} of {count(cell.processes, 'rank')}, launched {observation.launch}, in {seconds}"]
    if observation.leftovers:
        lines.append(f"{count(observation.leftovers, 'further process')} left running, ended by the engine")
    if observation.damaged:
        lines.append(f"skipped records: {', '.join(observation.damaged[:_SHOWN_RECORDS])}")
    for process in ranks:
        lines += [f"{process.name}: {_ending(process)}", *(f"  {line}" for line in _process_lines(process))]
    return lines


def _ending(process: Process) -> str:
    when = f"after {process.at:.1f} s"
    match process.ending:
        case Ending.RETURNED:
            return f"returned {when}"
        case Ending.RAISED:
            return f"raised {when}"
        case Ending.EXITED:
            return f"exited {when} with code {process.code}"
        case Ending.SIGNALLED:
            return f"ended {when} by {process.signal or 'an unknown signal'}"
        case Ending.TIMED_OUT:
            return f"still running {when}, at the deadline"
        case Ending.STOPPED:
            return f"still running {when}, ended by the engine because the main process had ended"
        case _:
            assert_never(process.ending)


def _process_lines(process: Process) -> Iterator[str]:
    for raised in process.chain[:_MOST_LINKS]:
        yield from _exception_lines(raised)
    if len(process.chain) > _MOST_LINKS:
        yield f"and {len(process.chain) - _MOST_LINKS} more exceptions"
    if process.ending is not Ending.RAISED:
        yield from _main_thread_frames(process.stacks)


def _exception_lines(raised: Raised) -> Iterator[str]:
    """Yield one exception of a chain, with its innermost frame."""
    message = raised.message.strip()
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    first, *rest = f"{raised.name}: {message}".splitlines()
    yield f"{_VIA[raised.via]} {first}" if raised.via in _VIA else first
    yield from (f"  {line}" for line in rest)
    if raised.frames:
        yield f"  at {path_in_package(raised.frames[-1])}"


def _main_thread_frames(stacks: str) -> Iterator[str]:
    """Yield the innermost frames of the main thread from faulthandler's output (most recent call first)."""
    before, current, after = stacks.rpartition("Current thread ")
    block = after if current else before.rpartition("Thread ")[2]
    frames = list(_FRAME.finditer(block.partition("\n\n")[0]))
    if frames:
        yield "in, innermost first:"
    for frame in frames[:_WAITING_FRAMES]:
        yield f"  {path_in_package(frame['file'])}:{frame['line']} {frame['name']}"
    if len(frames) > _WAITING_FRAMES:
        yield f"  and {len(frames) - _WAITING_FRAMES} more"


def _log_lines(observation: Observation) -> Iterator[str]:
    """Yield the end of each rank's log; once for a file that several processes share."""
    by_file: dict[Path | None, list[str]] = {}
    for process in observation.ranks:
        by_file.setdefault(process.log, []).append(process.name)
    for file, names in by_file.items():
        lines = logs.tail(observation.folder, file, _LOG_LINES)
        heading = f"log of {', '.join(names)}"
        yield f"{heading}, its last {count(len(lines), 'line')}:" if lines else f"{heading}: empty"
        yield from (f"  | {line}" for line in lines)
