"""The reader of `match.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from repros.diagnose.match.hints import NAME, Hints
from repros.engine.values import Key, boolean, list_of, lower_case, match_text, quote, text
from repros.model import Repro
from repros.model.errors import ReprosError


def _list(expected: str, convert: Callable[[Any], Any]) -> Key:
    return Key(f"a list of {expected}", list_of(convert))


def expression(value: Any) -> str:
    """Return a regular expression that compiles."""
    re.compile(text(value))
    return str(value)


def _lines_of_code(value: Any) -> tuple[tuple[str, str], ...]:
    """Return the items of a table of texts.

    Raises:
        TypeError: it is no table, or a value is no text.
    """
    if not isinstance(value, dict):
        raise TypeError(value)
    return tuple((name, text(line)) for name, line in value.items())


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
    "reads": _list("expressions with named groups", expression),
    "fixes": Key("a table of variants with lines of code", _lines_of_code),
    "usual_cause": Key("true or false", boolean),
    "common_message": Key("true or false", boolean),
    "torch_message": Key("true or false", boolean),
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
    tables = read_tables(file, "[RPR-0001]")
    return {id_: Hints(**parse_table(f"[{id_}] of {file}", table, _KEYS)) for id_, table in tables.items()}


def read_tables(file: Path, example: str) -> Mapping[str, Any]:
    """Return the tables of a file.

    Raises:
        ReprosError: it cannot be read; the message has a table's name as an example.
    """
    import tomllib  # noqa: PLC0415 - only what has changed is read

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not TOML, or not UTF-8
        raise ReprosError(f"{file} cannot be read ({error}); expected a table such as {example}.") from error


def parse_table(location: str, table: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the converted values of a table.

    Raises:
        ReprosError: it is no table, or has an unknown, missing or wrong key.
    """
    if not isinstance(table, dict):
        raise ReprosError(f"{location} = {quote(table)}; expected a table.")
    if missing := [name for name, key in keys.items() if key.required and name not in table]:
        raise ReprosError(f"{location} has no {missing[0]!r}; expected {keys[missing[0]].expected}.")
    values = {}
    for name, value in table.items():
        if name not in keys:
            raise ReprosError(f"unknown key {name!r} in {location}; expected one of: {', '.join(keys)}.")
        try:
            values[name] = keys[name].parse(value)
        except (ValueError, TypeError, re.error):
            raise ReprosError(f"{name} = {quote(value)} in {location}; expected {keys[name].expected}.") from None
    return values
