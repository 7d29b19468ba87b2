"""What `repros audit` reports for the pins that public projects train with."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement

from repros.advise.audit.assess import assess
from repros.advise.audit.assessment import Assessment, AuditStatus
from repros.advise.audit.sources import read_source
from repros.model import FailureKind, Repro

CHECKED = Path(__file__).with_name("checked_pins.toml")
_CHECKED = (AuditStatus.AFFECTED, AuditStatus.POSSIBLE, AuditStatus.UNKNOWN)
_MOST_FREQUENT = 8


@dataclass(frozen=True, eq=False)
class Pins:
    """One project's lines, and what the audit should say of them."""

    address: str
    lines: tuple[str, ...]
    is_lock: bool
    """Whether a package that is not among the lines is not installed."""
    answers: Mapping[int, AuditStatus]
    """By the number of the failure's id; the others are clear."""

    @property
    def name(self) -> str:
        """The repository."""
        return "/".join(self.address.split("/")[3:5])

    @property
    def file(self) -> str:
        """The file's name."""
        return self.address.rpartition("/")[2]

    def audit(self, repros: Iterable[Repro], folder: Path) -> list[Assessment]:
        """Return the assessments of the lines, written to a file in a folder."""
        file = folder / ("uv.lock" if self.is_lock else "requirements.txt")
        file.write_text(_lock(self.lines) if self.is_lock else "".join(f"{line}\n" for line in self.lines), "utf-8")
        return list(assess(repros, read_source(file), {}))


def _lock(lines: Iterable[str]) -> str:
    pins = (line.split("==") for line in lines)
    return "version = 1\n" + "".join(f'[[package]]\nname = "{name}"\nversion = "{version}"\n' for name, version in pins)


def checked_to() -> int:
    """Return the highest number of an id when the answers were checked."""
    number: int = _read(CHECKED)["checked_to"]
    return number


def read_pins(file: Path = CHECKED) -> list[Pins]:
    """Return the pins in the order of the file."""
    return [
        Pins(
            address=entry["address"],
            lines=tuple(entry["lines"]),
            is_lock=entry["address"].endswith("/uv.lock"),
            answers={number: status for status in _CHECKED for number in _numbers(entry.get(status.value, ""))},
        )
        for entry in _read(file)["files"]
    ]


def _read(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a text such as `1 3-5`."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def number_of(repro: Repro) -> int:
    """Return the number in a failure's id."""
    return int(repro.id.removeprefix("RPR-"))


def table(repros: Iterable[Repro]) -> str:
    """Return the table and its sentences, from the failures whose answers were checked."""
    catalogue, projects = tuple(repro for repro in repros if number_of(repro) <= checked_to()), read_pins()
    with TemporaryDirectory() as folder:
        audits = [pins.audit(catalogue, Path(folder)) for pins in projects]
    rows = ["| Repository | Pins | Bugs | Fixed since | Others | Possible | Unknown |", "|---|---|---|---|---|---|---|"]
    rows += [_row(pins, found) for pins, found in zip(projects, audits, strict=True)]
    return "\n".join([*rows, "", *_sentences(audits)]) + "\n"


def _row(pins: Pins, found: Sequence[Assessment]) -> str:
    counts = Counter(assessment.status for assessment in found)
    bugs = _bugs(found)
    fixed = sum(bool(bug.fixed) for bug in bugs)
    versions = ", ".join(map(_pin, pins.lines))
    cells = [
        len(bugs),
        fixed,
        counts[AuditStatus.AFFECTED] - len(bugs),
        counts[AuditStatus.POSSIBLE],
        counts[AuditStatus.UNKNOWN],
    ]
    return f"| [{pins.name}]({pins.address}) `{pins.file}` | {versions} | {' | '.join(map(str, cells))} |"


def _pin(line: str) -> str:
    requirement = Requirement(line)
    return f"{requirement.name} {str(requirement.specifier).removeprefix('==') or '(any)'}"


def _bugs(found: Iterable[Assessment]) -> list[Assessment]:
    return [one for one in found if one.status is AuditStatus.AFFECTED and one.repro.kind is FailureKind.BUG]


def _sentences(audits: Sequence[Sequence[Assessment]]) -> Iterator[str]:
    bugs = [_bugs(found) for found in audits]
    fixed = [sum(bool(bug.fixed) for bug in found) for found in bugs]
    yield (
        f"A file has between {min(map(len, bugs))} and {max(map(len, bugs))} documented bugs (median"
        f" {median(map(len, bugs)):g}), of which a newer release fixes between {min(fixed)} and {max(fixed)}"
        f" (median {median(fixed):g}). The fixed bugs that most files have:"
    )
    yield ""
    each = Counter(bug.repro for found in bugs for bug in found if bug.fixed)
    ordered = sorted(each.items(), key=lambda item: (-item[1], item[0].id))
    for repro, number in ordered[:_MOST_FREQUENT]:
        link = f"../repros/catalogue/{repro.family}/{repro.path.name}"
        yield f"- [{repro.id}]({link}) {repro.title}{' (silent)' if repro.silent else ''}: {number} of {len(bugs)}"
