"""A disagreeing cell, readable: what was expected, what each rank did, and where the evidence lies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_never

from repros.engine.catalogue import CATALOGUE
from repros.engine.launch import logs
from repros.model import Cell, Ending, Observation, Outcome, Process, Raised, Result
from repros.model.requirements import format_requirement
from repros.text.wording import count, relative_to_cwd

_LOG_LINES = 15
_WAITING_FRAMES = 6
_MOST_LINKS = 5
_LONGEST_MESSAGE = 400
_MARGIN = 10

_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\S+) in (?P<name>.+)$', re.MULTILINE)
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")
_VIA = {"cause": "caused by", "context": "while handling", "group": "one of"}


def text(result: Result) -> str:
    """Return everything a reader needs in order to understand why a cell has its verdict."""
    cell = result.cell
    lines = [f"{cell.label}: {result.verdict}", f"  {result.reason}", ""]
    lines += _entry("title", [cell.repro.title])
    lines += _entry("script", [str(relative_to_cwd(cell.repro.path))])
    lines += _entry("expected", _expected(cell))
    if result.observation is not None:
        lines += _entry("observed", _observed(cell, result.observation))
        lines += _logs(result.observation)
        lines += _entry("all logs", [str(relative_to_cwd(result.observation.folder))])
    lines += _entry("again", [_again(cell)])
    return "\n".join(lines)


def _entry(label: str, body: Sequence[str]) -> list[str]:
    """Set a label in the margin of the first line."""
    first, *rest = body
    return [f"{label:<{_MARGIN}}{first}", *(f"{'':<{_MARGIN}}{line}".rstrip() for line in rest)]


def _again(cell: Cell) -> str:
    """Return the command that runs this cell alone."""
    environment, own = cell.environment, not cell.repro.path.is_relative_to(CATALOGUE)
    on = "--python" if "/" in environment.name else "--stack"
    words = ["repros", "run", cell.repro.id, "--variant", cell.variant.name, "--strategy", cell.strategy]
    words += ["--device", cell.device.value, on, environment.name]
    return shlex.join([*words, *(["--catalogue", str(relative_to_cwd(cell.repro.path))] if own else [])])


def _expected(cell: Cell) -> list[str]:
    """Say what the header documents for the versions that are installed."""
    expectation, variant = cell.expectation, cell.variant
    ranges = ", ".join(map(format_requirement, variant.affected)) or "every release"
    installed = cell.environment.versions
    names = dict.fromkeys(["torch", *(r.name for r in variant.affected), *cell.repro.packages])
    found = ", ".join(f"{name} {installed[name]}" for name in names if name in installed)
    if expectation.outcome is Outcome.FAILS:
        said = [f"fails with {expectation.signature}", f"affected: {ranges}; here: {found}"]
    elif expectation.is_fix:
        said = ["returns, since this variant is a fix", f"affected without it: {ranges}; here: {found}"]
    else:
        said = ["returns, since these versions are not affected", f"affected: {ranges}; here: {found}"]
    return [*said, f"variant: {variant.about}"]


def _observed(cell: Cell, observation: Observation) -> list[str]:
    ranks = list(observation.ranks)
    numbered = sum(process.rank is not None for process in ranks)
    seconds = f"{observation.seconds:.1f} s (deadline {cell.repro.deadline:g} s)"
    lines = [f"{numbered} of {count(cell.processes, 'rank')}, launched {observation.launch}, in {seconds}"]
    if observation.leftovers:
        lines.append(f"{count(observation.leftovers, 'further process')} left running, ended by the engine")
    for process in ranks:
        lines += [f"{process.name}: {_ending(process)}", *(f"  {line}" for line in _details(process))]
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
            return f"still running {when}, when its time was up"
        case Ending.STOPPED:
            return f"still running {when}, ended by the engine since the main process had ended"
        case _:
            assert_never(process.ending)


def _details(process: Process) -> Iterator[str]:
    for raised in process.chain[:_MOST_LINKS]:
        yield from _link(raised)
    if len(process.chain) > _MOST_LINKS:
        yield f"and {len(process.chain) - _MOST_LINKS} more exceptions"
    if process.ending is not Ending.RAISED:
        yield from _waiting(process.stacks)


def _link(raised: Raised) -> Iterator[str]:
    """One exception of a chain, with the innermost place it came from."""
    message = raised.message.strip()
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " [...]"
    first, *rest = f"{raised.name}: {message}".splitlines()
    yield f"{_VIA[raised.via]} {first}" if raised.via in _VIA else first
    yield from (f"  {line}" for line in rest)
    if raised.frames:
        yield f"  at {_PACKAGES.sub('', raised.frames[-1])}"


def _waiting(stacks: str) -> Iterator[str]:
    """Yield the innermost frames of the main thread, read from faulthandler's dump (most recent call first)."""
    before, current, after = stacks.rpartition("Current thread ")
    block = after if current else before.rpartition("Thread ")[2]
    frames = list(_FRAME.finditer(block.partition("\n\n")[0]))
    if frames:
        yield "in, innermost first:"
    for frame in frames[:_WAITING_FRAMES]:
        yield f"  {_PACKAGES.sub('', frame['file'])}:{frame['line']} {frame['name']}"
    if len(frames) > _WAITING_FRAMES:
        yield f"  and {len(frames) - _WAITING_FRAMES} more"


def _logs(observation: Observation) -> Iterator[str]:
    """Yield the end of each rank's log, once for the processes that share a file."""
    by_file: dict[Path | None, list[str]] = {}
    for process in observation.ranks:
        by_file.setdefault(process.log, []).append(process.name)
    for file, names in by_file.items():
        lines = logs.tail(file, _LOG_LINES)
        heading = f"log of {', '.join(names)}"
        yield f"{heading}, its last {count(len(lines), 'line')}:" if lines else f"{heading}: empty"
        yield from (f"  | {line}" for line in lines)
