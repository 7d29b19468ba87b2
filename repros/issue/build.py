"""What is said upstream of one repro: the catalogue's own words on one side, what was seen here on the other.

The catalogue's words are public. Everything that was seen goes through the redactor, field by field and whatever the
field, before anything is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.engine.catalogue import CATALOGUE
from repros.engine.launch import logs
from repros.export import script
from repros.issue.redact import Identity, Redactor
from repros.model import Outcome, Repro, Variant, Verdict
from repros.model.requirements import format_requirement
from repros.stacks import load_stacks
from repros.text.describe import role

_LONGEST_TRACEBACK = 60
"""Lines."""
_LONGEST_LINE = 1_000
_OPENING = "Traceback (most recent call last)"

_FRAME = re.compile(r'^(?:\[rank\d+\]:)? +File "')
_INDENTED = re.compile(r"^(?:\[rank\d+\]:)?  ")
_OURS = "/repros/inside/"
_PACKAGES = re.compile(r'File "[^"]*/(?:site|dist)-packages/')

Line = Mapping[str, Any]
"""One object of a results file, as :func:`repros.record.read` yields it."""
Collect = Callable[[Line], tuple[str, str | None]]
"""Takes a record line; returns torch's own description of its environment, or why there is none."""


@dataclass(frozen=True)
class Way:
    """A variant, as the catalogue describes it."""

    name: str
    role: str
    """`fails`, `works`, or `does not fix`."""
    about: str
    claim: str | None
    source: str | None


@dataclass(frozen=True)
class Failure:
    """The catalogue's side."""

    id: str
    title: str
    silent: bool
    place: str
    """The script within the project, or its file's name where it is nobody's but the user's."""
    packages: tuple[str, ...]
    affected: tuple[str, ...]
    """Version ranges; none: no release is known to be free of it."""
    upstream: tuple[str, ...]
    sections: Mapping[str, str]
    """The docstring's paragraphs: `Symptom`, `Cause`, `Fix`."""
    ways: Mapping[str, Way]
    script: str


@dataclass(frozen=True)
class Run:
    """A cell's result."""

    variant: str
    strategy: str
    device: str
    environment: str
    """Which of the statement's environments, by name."""
    processes: int | None
    launch: str | None
    expected: str
    """`fails` or `passes`, for these versions."""
    affected: bool
    """Whether these versions lie in the documented range."""
    verdict: str
    signature: str | None
    """What failed, normalised; None when nothing did."""
    reason: str


@dataclass(frozen=True)
class Held:
    """An environment, as it was found."""

    name: str
    """A stack's name, or `own environment`."""
    stack: bool
    python: str
    platform: str
    versions: Mapping[str, str]
    collected: str
    """What `torch.utils.collect_env` says there."""
    uncollected: str | None
    """Why that is empty."""


@dataclass(frozen=True)
class Statement:
    """Everything that is said of one repro."""

    failure: Failure
    environments: tuple[Held, ...]
    runs: tuple[Run, ...]
    traceback: str
    """The end of a failing rank's log; empty when nothing failed or the logs are gone."""


def state(repro: Repro, lines: Iterable[Line], collect: Collect, identity: Identity) -> Statement:
    """Make the statement of a repro from its record lines, redacted.

    Args:
        repro: which one.
        lines: its lines of a results file, the last of each cell.
        collect: describes the environment of a line.
        identity: what must not be told.
    """
    order = [variant.name for variant in repro.variants]
    known = [line for line in lines if line["variant"] in order]
    # Cells that ran side by side ended in an order of chance.
    found = sorted(known, key=lambda line: order.index(line["variant"]))
    names = _names(found)
    firsts = {line["stack"]["name"]: line for line in reversed(found)}
    environments = tuple(_held(name, names[name], firsts[name], collect) for name in names)
    failure = _failure(repro, found)
    public = repro.path.is_relative_to(CATALOGUE)
    redactor = Redactor(identity, failure.script if public else "")
    return Statement(
        failure if public else redactor.everything(failure),
        redactor.everything(environments),
        redactor.everything(tuple(_run(line, names) for line in found)),
        redactor.text(_traceback(repro, found)),
    )


def shows_failure(line: Line) -> bool:
    """Whether a line tells of a failure that was seen."""
    return line.get("signature") is not None and Verdict(line["verdict"]) is not Verdict.INFRA


def _failure(repro: Repro, lines: Sequence[Line]) -> Failure:
    return Failure(
        id=repro.id,
        title=repro.title,
        silent=repro.silent,
        place=_place(repro),
        packages=repro.packages,
        affected=tuple(map(format_requirement, repro.affected)),
        upstream=repro.upstream,
        sections=repro.sections or {"Symptom": " ".join(repro.doc.split())},
        ways={variant.name: _way(variant) for variant in repro.variants},
        script=_script(repro, lines),
    )


def _place(repro: Repro) -> str:
    within = repro.path.is_relative_to(CATALOGUE)
    return f"repros/catalogue/{repro.path.relative_to(CATALOGUE)}" if within else repro.path.name


def _script(repro: Repro, lines: Sequence[Line]) -> str:
    """Return the script for the versions on which it failed, without the tables that only this project reads."""
    seen = next(filter(shows_failure, lines), lines[0])["stack"]
    stack = load_stacks().get(seen["name"])
    try:
        pins = (
            script.pins_of_stack(repro, stack)
            if stack
            else script.pins_of_versions(repro, seen["versions"], seen["python"])
        )
        return script.export_script(repro, pins, documented=False)
    except script.ExportError:  # a script of the user's own, in a form of its own
        return repro.path.read_text(encoding="utf-8")


def _way(variant: Variant) -> Way:
    return Way(variant.name, role(variant), variant.about, variant.claim, variant.source)


def _names(lines: Iterable[Line]) -> dict[str, str]:
    """Return what to call every environment; an interpreter's path is nobody's business."""
    given = list(dict.fromkeys(str(line["stack"]["name"]) for line in lines))
    own = [name for name in given if "/" in name]
    called = {name: f"own environment{f' {own.index(name) + 1}' if len(own) > 1 else ''}" for name in own}
    return {name: called.get(name, name) for name in given}


def _held(given: str, name: str, line: Line, collect: Collect) -> Held:
    stack = line["stack"]
    collected, why_not = collect(line)
    return Held(
        name=name,
        stack=given == name,
        python=str(stack.get("python", "")),
        platform=str(line.get("platform", "")),
        versions={str(package): str(version) for package, version in stack.get("versions", {}).items()},
        collected=collected,
        uncollected=why_not,
    )


def _run(line: Line, names: Mapping[str, str]) -> Run:
    expected = line.get("expected") or {}
    return Run(
        variant=str(line["variant"]),
        strategy=str(line["strategy"]),
        device=str(line["device"]),
        environment=names[str(line["stack"]["name"])],
        processes=line.get("processes"),
        launch=line.get("launch"),
        expected=str(expected.get("outcome", Outcome.FAILS.value)),
        affected=bool(expected.get("affected", True)),
        verdict=str(line["verdict"]),
        signature=line.get("signature"),
        reason=str(line["reason"] or ""),
    )


def _traceback(repro: Repro, lines: Iterable[Line]) -> str:
    """Return the last traceback in the logs of the run that tells most: the failing variant's, if it failed."""
    failed = sorted(filter(shows_failure, lines), key=lambda line: line["variant"] != "failing")
    for line in failed:
        folder = Path(line["logs"] or "")
        for log in (folder / "main.log", *sorted(folder.glob("processes/*/log.txt"))):
            text = logs.tail(log, 10 * _LONGEST_TRACEBACK)
            starts = [number for number, row in enumerate(text) if _OPENING in row]
            if starts:
                rows = [row[:_LONGEST_LINE] for row in _telling(repro, text[starts[-1] :])]
                left_out = len(rows) - _LONGEST_TRACEBACK
                kept = rows if left_out <= 0 else [rows[0], f"[... {left_out} lines ...]", *rows[1 + left_out :]]
                return "\n".join(kept)
    return ""


def _telling(repro: Repro, rows: Iterable[str]) -> Iterator[str]:
    """Yield a traceback's lines without the frames of this project's own launcher, paths cut."""
    ours = False
    for row in rows:
        if _FRAME.search(row):
            ours = _OURS in row
        elif not _INDENTED.search(row):
            ours = False
        if not ours:
            yield _PACKAGES.sub('File "', row).replace(str(repro.path.resolve()), _place(repro))
