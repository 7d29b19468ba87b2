"""Reads one script's header (PEP 723, `[tool.repro]`) into a :class:`~repros.model.Repro`.

Everything the header may say is in the two tables below; anything else is refused with the file, the line and what was
expected, so that a typo never turns into a failure that is silently not tested.
"""

from __future__ import annotations

import ast
import re
import signal
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from repros.errors import ReprosError
from repros.model.repro import Device, Outcome, Repro, Signature, Variant
from repros.signature import normalise

# The reference expression of PEP 723 ("inline script metadata") for the opening line and the content lines.
_BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$", re.MULTILINE)
_MEANT = re.compile(r"^#?\s*\[tool\.repro", re.MULTILINE)
_ID = re.compile(r"RPR-\d{4}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ENDS = re.compile(r"hang|exit ([1-9]\d?|1\d\d|2[0-4]\d|25[0-5])|signal SIG[A-Z0-9]+")
_FRAME = re.compile(r"(?:[\w.+-]+(?:/[\w.+-]+)*\.py:)?(?:[A-Za-z_]\w*|<module>)")
_FEWEST_LETTERS = 5
_LINK = re.compile(r"https://\S+")


class HeaderError(ReprosError):
    """A header that cannot be taken as it is."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        """Compose `file:line: problem`."""
        super().__init__(f"{path}:{line}: {problem}")
        self.path = path
        self.line = line


def has_header(path: Path) -> bool:
    """Whether the file means to be a repro script: a comment of it opens a table such as `[tool.repro]`.

    Whether it succeeds is for :func:`read` to say, so that a slip in the header does not take a script out of sight.
    """
    try:
        return _MEANT.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read(path: Path) -> Repro:
    """Read and check one repro script.

    Raises:
        HeaderError: with file, line and what was expected.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HeaderError(path, 1, f"cannot be read as UTF-8 text: {error}") from error
    place = _Place(path, source)
    return _repro(place, place.table("tool.repro"), _docstring(place))


class _Place:
    """A header's tables with the line that each key stands on."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        block = _BLOCK.search(source)
        if block is None:
            raise HeaderError(path, 1, "expected a PEP 723 block: '# /// script' ... '# ///'")
        self._first = source.count("\n", 0, block.start("content")) + 1
        self._lines = [line[2:] for line in block["content"].rstrip("\n").split("\n")]
        try:
            self.data: Mapping[str, Any] = tomllib.loads("\n".join(self._lines))
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"at line (\d+)", str(error))
            offset = int(at[1]) - 1 if at else len(self._lines) - 1
            raise HeaderError(path, self._first + offset, f"not valid TOML: {error}") from error
        except RecursionError as error:
            raise HeaderError(path, self._first, "not valid TOML: nested too deep") from error

    def table(self, dotted: str) -> Mapping[str, Any]:
        """Return the table at the dotted path."""
        found: Any = self.data
        for part in dotted.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise HeaderError(self.path, self._first, f"expected a table [{dotted}]")
        return found

    def line(self, table: str, key: str | None = None) -> int:
        """Return the line of the key in the table, or of the table's own heading."""
        current, heading = "", 0
        for number, text in enumerate(self._lines):
            if opened := re.match(r"\s*\[([^\[\]]+)\]", text):
                current = opened[1].strip()
                heading = number if current == table else heading
            elif current == table and key is not None and re.match(rf'\s*"?{re.escape(key)}"?\s*=', text):
                return self._first + number
        return self._first + heading

    def error(self, table: str, key: str | None, problem: str) -> HeaderError:
        """Compose the refusal at the key's own line."""
        return HeaderError(self.path, self.line(table, key), problem)


@dataclass(frozen=True)
class _Key:
    """What one key of the header holds."""

    expected: str
    """In words, for the refusal."""
    parse: Callable[[Any], Any]
    """Turns the TOML value into the model's; raises ValueError, TypeError or InvalidRequirement."""
    required: bool = False
    default: Any = None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    return value


def _matching(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not pattern.fullmatch(_text(value)):
            raise ValueError
        return str(value)

    return parse


def _several(parse: Callable[[Any], Any], *, empty: bool = True) -> Callable[[Any], tuple[Any, ...]]:
    def parse_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not (value or empty):
            raise TypeError
        return tuple(parse(item) for item in value)

    return parse_all


def _requirement(value: Any) -> Requirement:
    return Requirement(_text(value))


def _range(value: Any) -> Requirement:
    requirement = _requirement(value)
    if not requirement.specifier or requirement.url or requirement.marker or requirement.extras:
        raise ValueError
    return requirement


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _wording(value: Any) -> str:
    # What is left when the placeholders are gone has to tell one failure from another.
    telling = re.sub(r"\{\w+\}|[^A-Za-z]", "", normalise(_text(value)))
    if len(telling) < _FEWEST_LETTERS:
        raise ValueError
    return str(value)


def _wordings(value: Any) -> tuple[str, ...]:
    return (_wording(value),) if isinstance(value, str) else _several(_wording, empty=False)(value)


def _ends(value: Any) -> str:
    text = _matching(_ENDS)(value)
    if text.startswith("signal ") and text.removeprefix("signal ") not in signal.Signals.__members__:
        raise ValueError
    return text


_LINKS = _Key("a list of https:// links", _several(_matching(_LINK), empty=False), required=True)
_RANGES = 'a list of version ranges such as ["lightning>=2.1,<2.4"]'
_NAMES = "a list of names in lower case"
_DEVICES = "a list of devices out of: " + ", ".join(Device)

_REPRO: Mapping[str, _Key] = {
    "id": _Key("an id such as RPR-0001", _matching(_ID), required=True),
    "title": _Key("a sentence", _text, required=True),
    "upstream": _LINKS,
    "packages": _Key("a list of package names", _several(_text, empty=False), required=True),
    "affected": _Key(_RANGES, _several(_range), required=True),
    "requires": _Key(_RANGES, _several(_range), default=()),
    "home": _Key("the name of a stack", _text, required=True),
    "strategies": _Key(_NAMES, _several(_matching(_NAME), empty=False), required=True),
    "cold": _Key(_NAMES, _several(_matching(_NAME)), default=()),
    "devices": _Key(_DEVICES, _several(Device, empty=False), required=True),
    "processes": _Key("a number of ranks, 1 or more", _number, required=True),
    "minimum": _Key("a number of devices, 1 or more", _number),
    "deadline": _Key("a number of seconds, 1 or more", _number, default=120),
    "silent": _Key("true or false", _flag, default=False),
    "variants": _Key("tables [tool.repro.variants.NAME]", lambda value: value, required=True),
}

_VARIANT: Mapping[str, _Key] = {
    "outcome": _Key("'fails' or 'passes'", Outcome, required=True),
    "about": _Key("a line saying what this variant does", _text, required=True),
    "raises": _Key("the name of an exception class", _matching(re.compile(r"[A-Za-z_][\w.]*"))),
    "match": _Key("telling text of the message, or a list of alternative wordings", _wordings),
    "ends": _Key("'hang', 'exit N' or 'signal SIGNAME'", _ends),
    "frames": _Key(
        'a list of functions on the stack such as ["new_forward", "accelerate/hooks.py:new_forward"]',
        _several(_matching(_FRAME), empty=False),
    ),
    "claim": _Key("what the documented solution promises", _text),
    "source": _Key("an https:// link", _matching(_LINK)),
    "strategies": _Key(_NAMES, _several(_matching(_NAME), empty=False)),
    "devices": _Key(_DEVICES, _several(Device, empty=False)),
    "affected": _Key(_RANGES, _several(_range)),
    "requires": _Key(_RANGES, _several(_range)),
}


def _parsed(place: _Place, table: str, data: Any, keys: Mapping[str, _Key]) -> dict[str, Any]:
    """Check a table against its keys and turn every value into the model's."""
    if not isinstance(data, Mapping):
        raise place.error(table, None, f"expected a table [{table}]")
    for key in data:
        if key not in keys:
            raise place.error(table, key, f"unknown key {key!r} in [{table}]; expected one of: {', '.join(keys)}")
    parsed = {}
    for key, rule in keys.items():
        if key not in data:
            if rule.required:
                raise place.error(table, None, f"[{table}] lacks {key!r}; expected {rule.expected}")
            parsed[key] = rule.default
            continue
        try:
            parsed[key] = rule.parse(data[key])
        except (ValueError, TypeError, InvalidRequirement):
            problem = f"{key} = {data[key]!r} in [{table}]; expected {rule.expected}"
            raise place.error(table, key, problem) from None
    return parsed


def _repro(place: _Place, data: Mapping[str, Any], doc: str) -> Repro:
    """Check the whole header and build the repro."""
    at = "tool.repro"
    values = _parsed(place, at, data, _REPRO)
    if not isinstance(values["variants"], Mapping) or "failing" not in values["variants"]:
        raise place.error(at, None, "expected a table [tool.repro.variants.failing]")
    values["minimum"] = values["minimum"] or values["processes"]
    if values["minimum"] > values["processes"]:
        problem = f"minimum = {values['minimum']} in [{at}]; expected at most processes = {values['processes']}"
        raise place.error(at, "minimum", problem)
    if strange := [name for name in values["cold"] if name not in values["strategies"]]:
        problem = (
            f"cold names {strange[0]!r}; expected some of the repro's strategies: {', '.join(values['strategies'])}"
        )
        raise place.error(at, "cold", problem)
    try:
        dependencies = _several(_requirement, empty=False)(place.data.get("dependencies"))
    except (TypeError, InvalidRequirement):
        raise place.error("", "dependencies", "expected dependencies: a list of requirements") from None
    variants = values.pop("variants")
    documented = _parsed(place, f"{at}.variants.failing", variants["failing"], _VARIANT)
    if documented["outcome"] is not Outcome.FAILS:
        problem = "outcome of the failing variant; expected 'fails'"
        raise place.error(f"{at}.variants.failing", "outcome", problem)
    failing = _signature(place, "failing", documented)
    if failing is None:
        problem = "the failing variant lacks a signature; expected 'raises' with 'match', or 'ends'"
        raise place.error(f"{at}.variants.failing", None, problem)
    return Repro(
        path=place.path,
        dependencies=dependencies,
        doc=doc,
        variants=tuple(_variant(place, name, data, values, failing) for name, data in variants.items()),
        **values,
    )


def _variant(place: _Place, name: str, data: Any, repro: Mapping[str, Any], failing: Signature) -> Variant:
    """Build one variant; what it leaves out it takes from the repro and the failing variant."""
    table = f"tool.repro.variants.{name}"
    if not _NAME.fullmatch(name):
        raise place.error(table, None, f"variant {name!r}; expected a name in lower case, such as 'fresh_trainer'")
    values = _parsed(place, table, data, _VARIANT)
    for key in ("strategies", "devices"):
        if values[key] is None:
            values[key] = repro[key]
        elif strange := [item for item in values[key] if item not in repro[key]]:
            problem = (
                f"{key} of [{table}] names {str(strange[0])!r}; expected some of the repro's: {', '.join(repro[key])}"
            )
            raise place.error(table, key, problem)
    own = _signature(place, name, values)
    return Variant(
        name=name,
        outcome=values["outcome"],
        about=values["about"],
        strategies=values["strategies"],
        devices=values["devices"],
        affected=repro["affected"] if values["affected"] is None else values["affected"],
        requires=repro["requires"] + (values["requires"] or ()),
        signature=own or failing,
        claim=values["claim"],
        source=values["source"],
    )


def _signature(place: _Place, name: str, values: Mapping[str, Any]) -> Signature | None:
    """Build the signature that a variant gives itself, if it does."""
    table = f"tool.repro.variants.{name}"
    raises, match, ends = values["raises"], values["match"], values["ends"]
    if values["frames"] is not None and raises is None:
        raise place.error(table, "frames", f"[{table}] has frames without a signature; expected 'raises' beside them")
    if raises is None and match is None and ends is None:
        return None
    if values["outcome"] is Outcome.PASSES:
        raise place.error(table, "raises", "a variant that passes has no signature; expected it under one that fails")
    if ends is not None and (raises or match):
        raise place.error(table, "ends", "expected either 'ends' or 'raises' with 'match', not both")
    if ends is None and (raises is None or match is None):
        raise place.error(table, None, f"[{table}] has half a signature; expected both 'raises' and 'match'")
    return Signature(raises=raises, match=match or (), ends=ends, frames=values["frames"] or ())


def _docstring(place: _Place) -> str:
    """Return the script's docstring; the script must be Python and must have one."""
    try:
        doc = ast.get_docstring(ast.parse(place.source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, problem = getattr(error, "lineno", None) or 1, getattr(error, "msg", str(error))
        raise HeaderError(place.path, line, f"not valid Python: {problem}") from error
    if not doc:
        raise HeaderError(place.path, 1, "expected a docstring with the symptom, the cause and the fix")
    return doc
