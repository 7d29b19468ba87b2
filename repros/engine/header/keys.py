"""The keys of a header with their valid values, and the validation of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from repros.engine.header.block import HeaderBlock
from repros.engine.values import Key, boolean, list_of, match_text, quote, text
from repros.model import Device, End, ExpectedOutcome, FailureKind
from repros.model.affected import AnyOf

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""The name of a strategy or a variant."""

_ID = re.compile(r"[A-Z][A-Z0-9]{1,9}-[0-9]{4}")
_ENDS = re.compile(r"hang|exit ([1-9]\d?|1\d\d|2[0-4]\d|25[0-5])|signal SIG[A-Z0-9]+")
_FRAME = re.compile(r"(?:[\w.+-]+(?:/[\w.+-]+)*\.py:)?(?:[A-Za-z_]\w*|<module>)")
_MOST_RANKS = 64
_LONGEST_DEADLINE = 3_600
_LINK = re.compile(r"https://\S+")


def _matching(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not pattern.fullmatch(text(value)):
            raise ValueError
        return str(value)

    return parse


def _requirement(value: Any) -> Requirement:
    return Requirement(text(value))


def _version_range(value: Any) -> Requirement:
    requirement = _requirement(value)
    if not requirement.specifier or requirement.url or requirement.marker or requirement.extras:
        raise ValueError
    return requirement


def _integer_up_to(most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise ValueError
        return value

    return parse


def _condition(value: Any) -> AnyOf:
    return AnyOf.parse(text(value))


def _match_texts(value: Any) -> tuple[str, ...]:
    return (match_text(value),) if isinstance(value, str) else list_of(match_text, empty=False)(value)


def _end(value: Any) -> End:
    return End.parse(_matching(_ENDS)(value))


def _links(expected: str, *, required: bool = False) -> Key:
    return Key(expected, list_of(_matching(_LINK)), required=required, default=(), decides=False)


_A_LINK = "an https:// link"
_LINKS = "a list of https:// links"
_RANGES = 'a list of version ranges such as ["lightning>=2.1,<2.4"]'
_CONDITIONS = (
    'a list of version ranges such as ["lightning>=2.1,<2.4"], or of alternatives such as '
    '["accelerate<1.13 or no bitsandbytes>=0.48"]'
)
_NAMES = "a list of names in lower case"
_DEVICES = "a list of devices out of: " + ", ".join(Device)
_FINDS = Key("a list of names of checks in lower case", list_of(_matching(NAME)), decides=False)

# A key with a dot is one of a table in the repro's: `upstream.reports`. The defaults are what most scripts of the
# catalogue have, so that a header states what differs.
REPRO: Mapping[str, Key] = {
    "id": Key("an id such as RPR-0001", _matching(_ID), required=True),
    "title": Key("a sentence", text, required=True, decides=False),
    "kind": Key("one of: " + ", ".join(FailureKind), FailureKind, required=True, decides=False),
    "documented": Key(_A_LINK, _matching(_LINK), decides=False),
    "upstream.reports": _links(f"{_LINKS}, empty if nobody has reported the failure", required=True),
    "upstream.introduced_by": _links(_LINKS),
    "upstream.fixed_by": _links(_LINKS),
    "upstream.unreleased_fix": _links(_LINKS),
    "upstream.related": _links(_LINKS),
    "packages": Key("a list of package names", list_of(text, empty=False), required=True, decides=False),
    "affected": Key(_CONDITIONS, list_of(_condition), default=()),
    "requires": Key(_RANGES, list_of(_version_range), default=()),
    "exists": Key(_CONDITIONS, list_of(_condition), default=(), decides=False),
    "exists_source": Key(_A_LINK, _matching(_LINK), decides=False),
    "home": Key("the name of a stack", text, required=True, decides=False),
    "strategies": Key(_NAMES, list_of(_matching(NAME), empty=False), default=("auto",)),
    "cold": Key(_NAMES, list_of(_matching(NAME)), default=()),
    "devices": Key(_DEVICES, list_of(Device, empty=False), default=(Device.CPU,)),
    "processes": Key(f"a world size from 1 to {_MOST_RANKS}", _integer_up_to(_MOST_RANKS), default=1),
    "minimum": Key(f"a number of devices from 1 to {_MOST_RANKS}", _integer_up_to(_MOST_RANKS)),
    "deadline": Key(
        f"a number of seconds from 1 to {_LONGEST_DEADLINE}", _integer_up_to(_LONGEST_DEADLINE), default=120
    ),
    "silent": Key("true or false", boolean, default=False, decides=False),
    "finds": replace(_FINDS, default=()),
    "variants": Key("tables [tool.repro.variants.NAME]", lambda value: value, required=True),
}

# The default of a variant's key is what it inherits from the repro, or from the failing variant.
VARIANT: Mapping[str, Key] = {
    "outcome": Key("'fails' or 'passes'", ExpectedOutcome, required=True),
    "about": Key("a line saying what this variant does", text, required=True, decides=False),
    "raises": Key("the name of an exception class", _matching(re.compile(r"[A-Za-z_][\w.]*"))),
    "match": Key("text of the message, or a list of alternative texts", _match_texts),
    "ends": Key("'hang', 'exit N' or 'signal SIGNAME'", _end),
    "frames": Key(
        'a list of functions on the stack such as ["new_forward", "accelerate/hooks.py:new_forward"]',
        list_of(_matching(_FRAME), empty=False),
        decides=False,
    ),
    "claim": Key("what the documented solution promises", text, decides=False),
    "source": Key(_A_LINK, _matching(_LINK), decides=False),
    "finds": _FINDS,
    "contrast": Key("true or false", boolean, default=False, decides=False),
    "strategies": Key(_NAMES, list_of(_matching(NAME), empty=False)),
    "devices": Key(_DEVICES, list_of(Device, empty=False)),
    "affected": Key(_CONDITIONS, list_of(_condition)),
    "requires": Key(_RANGES, list_of(_version_range)),
}

_OUTCOMES = {"failing": ExpectedOutcome.FAILS, "fixed": ExpectedOutcome.PASSES}


def variant_keys(name: str) -> Mapping[str, Key]:
    """Return the keys of a variant's table: `failing` and `fixed` have their outcome by default, others state it."""
    if name not in _OUTCOMES:
        return VARIANT
    return {**VARIANT, "outcome": replace(VARIANT["outcome"], required=False, default=_OUTCOMES[name])}


def requirements(value: Any) -> tuple[Requirement, ...]:
    """Return the dependencies of a script.

    Raises:
        TypeError: not a list, or an empty one.
        ValueError: an item is not a requirement (InvalidRequirement), or has a control character.
    """
    return list_of(_requirement, empty=False)(value)


def flattened(data: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return a table with the keys of inner tables as dotted keys, if `keys` has dotted ones of them."""
    inner = {key.partition(".")[0] for key in keys if "." in key}
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if key in inner and isinstance(value, Mapping):
            flat.update({f"{key}.{name}": item for name, item in value.items()})
        else:
            flat[key] = value
    return flat


def parsed(block: HeaderBlock, table: str, data: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Validate a table and convert its values to those of the model.

    Raises:
        HeaderError: an unknown key, a missing one, or an unexpected value.
    """
    if not isinstance(data, Mapping):
        raise block.error(table, None, f"expected a table [{table}]")
    data = flattened(data, keys)
    for key in data:
        if key not in keys:
            raise block.error(table, key, f"unknown key {key!r} in [{table}]; expected one of: {', '.join(keys)}")
    values = {}
    for key, rule in keys.items():
        if key not in data:
            if rule.required:
                raise block.error(table, None, f"[{table}] lacks {key!r}; expected {rule.expected}")
            values[key] = rule.default
            continue
        try:
            values[key] = rule.parse(data[key])
        except (ValueError, TypeError, InvalidRequirement):
            problem = f"{key} = {quote(data[key])} in [{table}]; expected {rule.expected}"
            raise block.error(table, key, problem) from None
    return values
