"""The index, the heat map and the costs: one row for each failure or stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from repros.evidence import StackStatus, measured_devices, stack_status
from repros.model import Repro, Role, Stack
from repros.site.prose import inline
from repros.site.source import Source
from repros.text.wording import every_release_of

SYMBOLS = {StackStatus.FAILS: "✕", StackStatus.CLEAN: "✓", StackStatus.DIFFERS: "≠", None: "·"}
"""How a status is drawn where there is no room for a word."""
WORDS = {StackStatus.FAILS: "fails", StackStatus.CLEAN: "clean", StackStatus.DIFFERS: "differs", None: "not measured"}
CLASSES = {StackStatus.FAILS: "f", StackStatus.CLEAN: "c", StackStatus.DIFFERS: "d", None: "n"}
"""Style classes; short, because the index has one for each failure and stack."""


@dataclass(frozen=True)
class Square:
    """One failure on one stack."""

    stack: Stack
    status: StackStatus | None
    """None: not measured there."""

    @property
    def word(self) -> str:
        """The status in a word."""
        return WORDS[self.status]

    @property
    def symbol(self) -> str:
        """The status in a letter."""
        return SYMBOLS[self.status]

    @property
    def style(self) -> str:
        """The class of its style."""
        return CLASSES[self.status]

    def version(self, package: str) -> str:
        """Return the stack's release of a package; empty if it pins none."""
        pins = (str(one.specifier).removeprefix("==") for one in self.stack.requirements if one.name == package)
        return next(pins, "")


def strip(repro: Repro, source: Source) -> list[Square]:
    """Return what was measured of one failure: a square for each stack."""
    return [Square(stack, stack_status(repro, stack, source.evidence)) for stack in source.stacks]


def row(repro: Repro, source: Source) -> dict[str, Any]:
    """Return what the index shows of one failure, and what it is filtered by."""
    squares = strip(repro, source)
    sections = repro.sections
    searched = [repro.id, repro.slug.replace("_", " "), repro.title, sections.get("Symptom", ""), *repro.packages]
    searched += [text for variant in repro.variants for text in variant.signature.match]
    return {
        "repro": repro,
        "title": inline(repro.title),
        "affected": affected_text(repro),
        "squares": squares,
        "fails_on": " ".join(square.stack.name for square in squares if square.status is StackStatus.FAILS),
        "works": sum(variant.role is Role.WORKS for variant in repro.variants),
        "fails_to": sum(variant.role is Role.DOES_NOT_FIX for variant in repro.variants),
        "devices": measured_devices(repro, source.evidence),
        "searched": " ".join(dict.fromkeys(" ".join(searched).lower().split())),
    }


def affected_text(repro: Repro) -> str:
    """Return the affected releases on one line."""
    return ", ".join(map(str, repro.affected)) or every_release_of(repro.packages)


def choices(repros: Iterable[Repro]) -> Mapping[str, list[str]]:
    """Return the values that the index can be filtered by."""
    known = tuple(repros)
    return {
        "packages": sorted({package for repro in known for package in repro.packages}),
        "strategies": sorted({strategy for repro in known for strategy in repro.strategies}),
        "kinds": sorted({repro.kind.value for repro in known}),
    }


@dataclass(frozen=True)
class Bar:
    """One bar of a plot."""

    label: str
    note: str
    """What stands below the label."""
    value: float
    text: str
    """The value with its unit."""
    share: float
    """Its length as a part of the longest, from 0 to 100."""


def bars(values: Iterable[tuple[str, str, float]], text: str) -> list[Bar]:
    """Return bars of labels, notes and values; `text` formats a value, such as `{:.1f} s`."""
    known = [*values]
    most = max((value for _, _, value in known), default=0) or 1
    return [Bar(label, note, value, text.format(value), round(100 * value / most, 1)) for label, note, value in known]


def plots(source: Source) -> list[dict[str, Any]]:
    """Return the plots of what the matrix costs, from the evidence and the stacks' measured sizes."""
    stacks = source.stacks
    units = {stack.name: [one for unit, one in source.evidence.items() if unit.stack == stack.name] for stack in stacks}
    cells = {name: sum(len(one.variants) for one in found) for name, found in units.items()}
    seconds = {name: sum(one.seconds for one in found) for name, found in units.items()}
    notes = {stack.name: f"torch {Square(stack, None).version('torch')}" for stack in stacks}
    launches: dict[str, list[float]] = {}
    for one in source.evidence.values():
        launches.setdefault(f"{one.launch}, {one.processes} rank{'s' * (one.processes > 1)}", []).append(
            one.seconds / len(one.variants)
        )
    per_cell = [(n, notes[n], seconds[n] / cells[n]) for n in cells if cells[n]]
    medians = [(name, f"{len(each)} units", sorted(each)[len(each) // 2]) for name, each in sorted(launches.items())]
    sizes = [(stack.name, notes[stack.name], stack.cuda) for stack in stacks]
    downloads = [(name, note, size.download / 1e9) for name, note, size in sizes if size]
    disk = [(name, note, size.unpacked / 1e9) for name, note, size in sizes if size]
    return [
        {
            "title": "Seconds for a cell, by stack",
            "about": "Mean over all measured cells.",
            "bars": bars(per_cell, "{:.1f} s"),
        },
        {
            "title": "Seconds for a cell, by launch",
            "about": "Median of the units. Warm ranks are forked from a process that has imported the libraries.",
            "bars": bars(medians, "{:.1f} s"),
        },
        {
            "title": "Cells measured, by stack",
            "about": "A cell is one variant of a failure, under a strategy, on a device.",
            "bars": bars([(name, notes[name], number) for name, number in cells.items()], "{:.0f}"),
        },
        {"title": "Download, by stack", "about": "With torch's CUDA build.", "bars": bars(downloads, "{:.1f} GB")},
        {"title": "Disk, by stack", "about": "With torch's CUDA build.", "bars": bars(disk, "{:.1f} GB")},
    ]
