"""The answer of `repros triage`: one frozen value for every kind of input."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from repros.scripts.triage.kind import InputKind

MOST_COMMANDS = 3
"""Commands that an answer ends with."""


_IMPORTANCE = (
    "fix",
    "likely",
    "ran",
    "upgrade",
    "where",
    "because",
    "error",
    "reported",
    "supposed",
    "computed",
    "begins",
    "link",
    "found",
    "uses",
    "reads",
    "possible",
    "check",
    "says",
    "missing",
    "excluded",
    "apart",
    "or",
    "affects",
    "stated",
    "ranks",
    "at fault",
    "seen",
    "measured",
    "sure",
    "shows",
    "near",
    "also",
)
"""The labels of all sections, the most important first."""


class Certainty(StrEnum):
    """How certain the title of an answer is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"
    """Nothing that is known explains the input."""

    @property
    def is_answer(self) -> bool:
        """Whether the title may be acted on."""
        return self in {Certainty.CERTAIN, Certainty.LIKELY}


_FACTS = (InputKind.ID, InputKind.WORDS, InputKind.PACKAGES, InputKind.ENVIRONMENT)
"""Inputs that are looked up, so that an answer is certain."""


@dataclass(frozen=True)
class Section:
    """One labelled part of an answer."""

    label: str
    """One word, such as `because`, `fix`, `where`; the key of the section in JSON."""
    bodies: tuple[str, ...]
    """Sentences, or lines of code."""
    is_code: bool = False
    """Whether the bodies are lines to paste, which are not wrapped."""
    most_lines: int = 3
    """Lines of a terminal that it takes at most."""
    is_whole: bool = False
    """Whether it is left out rather than shortened: half of a fix or of a line to paste is worth nothing."""

    @property
    def importance(self) -> int:
        """Its position among all sections by importance: the last ones are shortened first.

        A cause and its check are as important; the later ones of an answer are shortened first.
        """
        return _IMPORTANCE.index("possible" if self.label == "check" else self.label)


@dataclass(frozen=True)
class Answer:
    """What is known about one input, the most important first."""

    kind: InputKind
    title: str
    """What it is, in one sentence."""
    certainty: Certainty
    repro_id: str = ""
    """The documented failure; empty if there is none."""
    sections: tuple[Section, ...] = ()
    """In the order of their importance to a reader."""
    next: tuple[str, ...] = ()
    """At most :data:`MOST_COMMANDS` commands that work as they stand."""
    notes: tuple[str, ...] = ()
    """A sentence for each omission."""

    @property
    def subtitle(self) -> str:
        """The id and the certainty, as far as they say something about the title."""
        is_fact = self.certainty is Certainty.CERTAIN and self.kind in _FACTS
        stated = [] if is_fact or self.certainty is Certainty.UNKNOWN else [self.certainty.value]
        return ", ".join(filter(None, [self.repro_id, *stated]))

    def __post_init__(self) -> None:
        """Refuse more commands than a reader tries."""
        if len(self.next) > MOST_COMMANDS:
            raise ValueError(f"{len(self.next)} commands; expected at most {MOST_COMMANDS}.")
