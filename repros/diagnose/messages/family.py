"""Message families: what the words of an error say, as data; the reader of the tables in `families/`.

A table describes the errors that have the same words, whatever the program: `title`, the exception `classes`, the
`patterns` of the message, and what follows from their named groups. `docs/messages.md` describes the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from repros.diagnose.match.hint_files import expression, parse_table, read_tables
from repros.engine.values import Key, list_of, text

FOLDER = Path(__file__).parent / "families"

Words = tuple[tuple[str, ...], ...]
"""Groups of words; a sentence has one of each group."""


class Fault(StrEnum):
    """What has to change for the error to go away."""

    PROGRAM = "program"
    CONFIGURATION = "configuration"
    MACHINE = "machine"
    ANOTHER_RANK = "another rank"


@dataclass(frozen=True)
class Cause:
    """One cause that public threads have for an error."""

    text: str
    fix: str
    check: str = ""
    """How to find out whether it is this cause."""
    shows: str = ""
    """What the check of its symptom prints if it is this cause, as a clause: `the weights are first`."""
    evidence: tuple[str, ...] = ()
    """Expressions; the cause is likely if one is found in a line of the user's own code, or in a frame
    `file:line function`."""
    when: str = ""
    """A named group of the message, or a word that `derived` adds; the cause is likely if the message has it."""
    unless: tuple[str, ...] = ()
    """Expressions; it is not this cause if one is found where `evidence` is searched."""
    threads: tuple[str, ...] = ()
    """Public threads with this cause."""
    needs: tuple[str, ...] = ()
    """Facts of a report without each of which it is not this cause; `diagnose/issue/facts.toml` has them."""
    excluded_by: tuple[str, ...] = ()
    """Facts of a report with one of which it is not this cause."""
    favoured_by: tuple[str, ...] = ()
    """Facts of a report with one of which this cause is the first to look at."""


@dataclass(frozen=True)
class MessageFamily:
    """Errors with the same words."""

    name: str
    area: str
    """The name of its file: `devices`."""
    title: str
    fault: Fault
    patterns: tuple[str, ...]
    """Expressions with named groups, searched in the message; the first that is found counts."""
    literals: tuple[str, ...]
    """For each pattern, a text that every message with it contains; empty if there is none."""
    causes: tuple[Cause, ...]
    """In the order in which public threads have them."""
    classes: tuple[str, ...] = ()
    """Exception classes by their last name; empty for any."""
    facts: tuple[str, ...] = ()
    """Sentences with the named groups in braces."""
    log: tuple[str, ...] = ()
    """Expressions with named groups, searched in the other lines of the log."""
    next: tuple[str, ...] = ()
    """Commands; `{script}` is the program that the log names."""
    reported: tuple[Words, ...] = ()
    """What sentences of an issue say that report the error without its message."""

    def is_reported(self, sentence: str) -> bool:
        """Return whether a sentence, in lower case, reports the error in other words than the message's."""
        return any(all(any(word in sentence for word in group) for group in words) for words in self.reported)

    def search(self, class_name: str, message: str) -> dict[str, str] | None:
        """Return the named groups of the first pattern found in a message; None if none is.

        Args:
            class_name: the last name of the exception's class; empty if unknown.
            message: the message; of an exception without one, the class is searched.
        """
        message = message or class_name
        if self.classes and class_name and class_name not in self.classes:
            return None
        for pattern, literal in zip(self.patterns, self.literals, strict=True):
            if literal in message and (found := re.search(pattern, message)):
                return {name: value for name, value in found.groupdict().items() if value}
        return None


def read_families(folder: Path = FOLDER) -> tuple[MessageFamily, ...]:
    """Read all tables of a folder, in the order of files and tables.

    Raises:
        ReprosError: a table is invalid; the message has its file, its key and what was expected.
    """
    return tuple(family for file in sorted(folder.glob("*.toml")) for family in _read_file(file))


def load_families() -> tuple[MessageFamily, ...]:
    """Return the project's own families, from the cache unless a file has changed."""
    from repros.model.cache.snapshot import files_below, remember  # noqa: PLC0415 - only a log without a match needs it

    return remember("families", [*files_below(FOLDER, ".toml"), __file__], read_families)


def _read_file(file: Path) -> Iterator[MessageFamily]:
    for name, table in read_tables(file, "[device-mismatch]").items():
        values = parse_table(f"[{name}] of {file}", table, _FAMILY)
        yield MessageFamily(
            name=name, area=file.stem, literals=tuple(map(required_literal, values["patterns"])), **values
        )


def read_causes(value: Any) -> tuple[Cause, ...]:
    """Return the causes of a family or a symptom.

    Raises:
        ReprosError: a cause has an unknown, missing or wrong key.
    """
    return tuple(Cause(**parse_table("a cause", item, _CAUSE)) for item in value)


def _list(expected: str, convert: Callable[[Any], Any] = text, **more: Any) -> Key:
    return Key(f"a list of {expected}", list_of(convert), **more)


def _words(value: Any) -> Words:
    """Return the groups of words of `a | b & c`: one of the first group and `c`."""
    groups = text(value).lower().split("&")
    return tuple(tuple(word for word in map(str.strip, group.split("|")) if word) for group in groups)


_CAUSE: Mapping[str, Key] = {
    "text": Key("a cause, without its full stop", text, required=True),
    "fix": Key("the change that removes the cause", text, required=True),
    "check": Key("what to run or print to recognise the cause", text),
    "shows": Key("what the symptom's check prints for this cause, as a clause", text),
    "evidence": _list("regular expressions", expression),
    "unless": _list("regular expressions", expression),
    "when": Key("the name of a group", text),
    "threads": _list("addresses of public threads"),
    "needs": _list("facts of a report"),
    "excluded_by": _list("facts of a report"),
    "favoured_by": _list("facts of a report"),
}
_FAMILY: Mapping[str, Key] = {
    "title": Key("what the words say, without a full stop", text, required=True),
    "fault": Key("one of: program, configuration, machine, another rank", Fault, required=True),
    "patterns": Key("a list of regular expressions with named groups", list_of(expression, empty=False), required=True),
    "causes": Key("tables [[NAME.causes]] with text, fix, check", read_causes, required=True),
    "classes": _list("exception classes by their last name"),
    "facts": _list("sentences with groups in braces"),
    "log": _list("regular expressions with named groups", expression),
    "next": _list("commands"),
    "reported": _list("groups of words as `a | b & c`", _words),
}

_TOKEN = re.compile(
    r"""(?P<escape>\\.)
      | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
      | (?P<quantifier>[*?]\??|\{[\d,]+\}\??|\+\??)
      | (?P<special>[\^$.|()])
      | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def required_literal(pattern: str) -> str:
    """Return the longest text that every message with a pattern contains; empty if there is none.

    Only characters outside of groups and sets count. A pattern with alternatives at its top has none.
    """
    parts, depth = [""], 0
    for token in _TOKEN.finditer(pattern):
        text, kind = token[0], token.lastgroup
        depth += (text == "(") - (text == ")")
        if depth or text == ")":
            parts.append("")
        elif text == "|" and kind == "special":
            return ""
        elif kind == "plain" or (kind == "escape" and not text[1].isalnum()):
            parts[-1] += text[-1]
        else:
            if kind == "quantifier" and not text.startswith("+"):  # the character before may be absent
                parts[-1] = parts[-1][:-1]
            parts.append("")
    return max(parts, key=len)
