"""Compare the options of an optimizer's parameter groups, parameter by parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from repros.diagnose.compare.difference import Difference

_NAMES = {"lr": "learning rate", "weight_decay": "weight decay"}
_SAME = 1e-9
"""Relative difference between two rates computed in different ways, in double precision."""
_MOST_NAMED = 3


def differing_option(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> Difference | None:
    """Return the first difference of two lists of groups, the learning rate's before that of other options.

    Args:
        one: groups with their `options` and the `names` of their parameters, of all ranks.
        other: those of the second run.
    """
    options = [_by_parameter(groups) for groups in (one, other)]
    only = [[name for name in options[mine] if name not in options[1 - mine]] for mine in (0, 1)]
    common = [name for name in options[0] if name in options[1]]
    differences = [one for name in common for one in _differences(name, options[0][name], options[1][name])]
    differences.sort(key=lambda difference: difference[0] != "lr")
    if differences:
        option, name, values = differences[0]
        same = sum(difference[0] == option and difference[2] == values for difference in differences)
        of = f"{same} parameters" if same > 1 else name
        title = _NAMES.get(option, option)
        return Difference(title, f"{title} of {of}", values)
    if any(only):
        texts = tuple(map(list_names, only))
        return Difference(
            "parameters trained", "parameters that the optimizer has in one run alone", (texts[0], texts[1])
        )
    return None


def _by_parameter(groups: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {name: group["options"] for group in groups for name in group["names"]}


def _differences(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, str, tuple[str, str]]]:
    return [
        (option, name, (_text(one[option]), _text(other[option])))
        for option in one
        if option in other and not _is_same(one[option], other[option])
    ]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME)
    return bool(one == other)


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def list_names(names: Sequence[str]) -> str:
    """Return the first of several names as a text."""
    if not names:
        return "no others"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
