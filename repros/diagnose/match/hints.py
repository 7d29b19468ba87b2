"""Hints to recognise a failure in pasted logs, in addition to its signature: the file `match.toml`.

A signature is exact, because a verdict depends on it. A pasted log often has only a part of the message, or the wording
of another release, and words of the program around it. This is knowledge about logs and not about the failure, so it is
not in the script's header: `match.toml` is in the folder of a catalogue, with a table for each id that needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from repros.engine.values import Key, boolean, list_of, lower_case, match_text, quote, text
from repros.model import Repro
from repros.model.errors import ReprosError

NAME = "match.toml"


@dataclass(frozen=True)
class Hints:
    """Hints to recognise a failure in a pasted log. Hints alone make a repro at most a possible candidate."""

    texts: tuple[str, ...] = ()
    """Further parts of its message, and wordings of other releases."""
    common_texts: tuple[str, ...] = ()
    """Wordings that the errors of many other calls have too. They count if the stack has one of `calls`, or a log
    without a stack has one of `words`."""
    other_texts: tuple[str, ...] = ()
    """Parts of the message that show another cause."""
    symptoms: tuple[str, ...] = ()
    """Messages of libraries, of any exception class, when the failure occurs and in other cases too: a warning before
    it, or an error that follows from it. They count if the log has one of `calls` or `words`, if there are any; those
    of the usual cause always count."""
    own_message: str = ""
    """The part of its message that no other cause prints: with it, the repro is likely even without a stack."""
    calls: tuple[str, ...] = ()
    """Calls that are evidence for it, in addition to the functions of its signature: `PART_OF_PATH` or
    `PART_OF_PATH:START_OF_FUNCTION`."""
    waits: tuple[str, ...] = ()
    """For a hang, the calls in which a rank waits, in the form of `calls`; dumps of a flight recorder have them."""
    words: tuple[str, ...] = ()
    """Words anywhere in a log, in lower case, that are evidence for this repro among those with the same message."""
    special_cases: tuple[str, ...] = ()
    """Ids of the repros that are this failure inside a library: a call on the stack that is evidence for one of them
    rules this one out."""
    elsewhere: str = ""
    """The reason to give if the stack has one of `calls` and none of the functions of its signature."""
    other_causes: tuple[str, ...] = ()
    """Undocumented causes of the message, each with the call to inspect."""
    usual_cause: bool = False
    """Whether it is the most frequent cause of its message in public threads: it comes first if no word decides, and
    its symptoms need no call or word."""
    common_message: bool = False
    """Whether many other causes have its message, so that the message alone makes it only possible."""

    @property
    def needs_more(self) -> bool:
        """Whether a symptom counts only with a call or a word."""
        return bool(self.calls or self.words) and not self.usual_cause


def _list(expected: str, convert: Callable[[Any], Any]) -> Key:
    return Key(f"a list of {expected}", list_of(convert))


_KEYS: Mapping[str, Key] = {
    "texts": _list("further parts of the message", match_text),
    "common_texts": _list("wordings that other errors have too", match_text),
    "other_texts": _list("parts of a message that show another cause", match_text),
    "symptoms": _list("warnings and errors that it may lead to", match_text),
    "own_message": Key("the part of the message that is its own", match_text),
    "calls": _list("calls such as optim:step", text),
    "waits": _list("calls such as trainer/trainer.py:save_checkpoint", text),
    "words": _list("words in lower case", lower_case),
    "special_cases": _list("ids such as RPR-0024", text),
    "elsewhere": Key("a sentence without its full stop", text),
    "other_causes": _list("sentences with the call to look at", text),
    "usual_cause": Key("true or false", boolean),
    "common_message": Key("true or false", boolean),
}
_NONE = Hints()


def hints_of(repro: Repro) -> Hints:
    """Return the hints in the nearest `match.toml`: in the folder of the repro's script, or in the one above it.

    Raises:
        ReprosError: the file is invalid; the message has its path, the table and what was expected.
    """
    folder = repro.path.parent
    return (_read_cached(folder / NAME) or _read_cached(folder.parent / NAME)).get(repro.id, _NONE)


@cache
def _read_cached(file: Path) -> Mapping[str, Hints]:
    return read_hints(file) if file.is_file() else {}


def read_hints(file: Path) -> Mapping[str, Hints]:
    """Return the hints of a file by the id of their repro.

    Raises:
        ReprosError: the file is invalid; the message has its path, the table and what was expected.
    """
    import tomllib  # noqa: PLC0415 - kept hints are not read again

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not TOML, or not UTF-8
        raise ReprosError(f"{file} cannot be read ({error}); expected a table such as [RPR-0001].") from error
    return {id_: _hints(f"[{id_}] of {file}", table) for id_, table in tables.items()}


def _hints(location: str, table: Any) -> Hints:
    if not isinstance(table, dict):
        raise ReprosError(f"{location} = {quote(table)}; expected a table.")
    values = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise ReprosError(f"unknown key {key!r} in {location}; expected one of: {', '.join(_KEYS)}.")
        try:
            values[key] = _KEYS[key].parse(value)
        except (ValueError, TypeError):
            raise ReprosError(f"{key} = {quote(value)} in {location}; expected {_KEYS[key].expected}.") from None
    return Hints(**values)
