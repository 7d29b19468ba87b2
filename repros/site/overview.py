"""The index and the heat map: one row for each failure."""

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
        pins = (
            str(requirement.specifier).removeprefix("==")
            for requirement in self.stack.requirements
            if requirement.name == package
        )
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
    return ", ".join(map(str, repro.affected)) or every_release_of(repro.measurable)


def choices(repros: Iterable[Repro]) -> Mapping[str, list[str]]:
    """Return the values that the index can be filtered by."""
    known = tuple(repros)
    return {
        "packages": sorted({package for repro in known for package in repro.packages}),
        "strategies": sorted({strategy for repro in known for strategy in repro.strategies}),
        "kinds": sorted({repro.kind.value for repro in known}),
    }
