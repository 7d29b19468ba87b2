"""Compare the results of calls other than those of modules, in their order.

Such results are a collective's result, a tensor read as Python numbers, a row of a dataset, tokens, a batch. They are
compared only if the rest of the training is equal bit for bit, so that they contain no rounding. One run may print more
than the other, so results of a kind are compared between two steps if all ranks of both runs have equally many.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.layout import Pair, differing_kinds
from repros.diagnose.compare.recording import RecordedStep
from repros.diagnose.compare.tolerance import Tolerance
from repros.diagnose.compare.tolerance_check import ToleranceCheck

_STAGE = "result"


def compare_results(one: RecordedStep, other: RecordedStep, *, exact: bool) -> tuple[Difference | None, int]:
    """Return the first difference between the results of two runs between two steps, and the number compared.

    Args:
        one: the results of the reference.
        other: the results of the other run.
        exact: whether to require bitwise equality.
    """
    if len(one.ranks) != len(other.ranks) or one.ranks[0]["world"] != other.ranks[0]["world"]:
        return None, 0
    compared = 0
    of_ranks = [_in_pairs(*pair) for pair in zip(one.ranks, other.ranks, strict=True)]
    # The n-th results of all ranks before the next: a number that one rank draws precedes its effect on others.
    for pairs in itertools.zip_longest(*of_ranks):
        for rank, pair in enumerate(pairs):
            if pair is None:
                continue
            compared += 1
            where = f"rank {rank}" if len(pairs) > 1 else None
            title, mine, theirs = pair
            difference = _difference(title, mine, theirs, where, max(one.number, 1), exact=exact)
            if difference is not None:
                return difference, compared
    return None, compared


def _in_pairs(
    mine: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the results of one rank in pairs, each with a name; a repeated name is numbered."""
    others = {
        kind: iter([result for result in theirs["results"] if result["kind"] == kind])
        for kind, number in mine["counts"].items()
        if theirs["counts"].get(kind) == number
    }
    names: Counter[str] = Counter()
    for result in mine["results"]:
        title = f"{result['what']} in {result['in']}" if result["in"] else result["what"]
        names[title] += 1
        other = next(others.get(result["kind"], iter(())), None)
        if other is not None:
            yield title if names[title] == 1 else f"{title} ({names[title]})", result["values"], other["values"]


def _difference(
    title: str, one: Mapping[str, Any], other: Mapping[str, Any], ranks: str | None, number: int, *, exact: bool
) -> Difference | None:
    """Return the first difference of two results: first of the numbers in both, then of the numbers in only one."""
    names = {path: f"result {path} of {title}" if path else f"result of {title}" for path in (*one, *other)}
    check = ToleranceCheck(exact=exact)
    check.begin(Tolerance("float32", 1, 1, number))
    for path in (path for path in one if path in other):
        pair = Pair(title, one[path], other[path], ranks, key=f"{title} {path}")
        if "unread" in pair.one or "unread" in pair.other:
            continue
        kinds = differing_kinds(pair.one, pair.other)
        if kinds is not None:
            return Difference(_STAGE, names[path], kinds, rank=ranks)
        distance = check.compare(_STAGE, pair)
        if distance is not None:
            values = tuple(f"{distance.measure} {value:.9g}" for value in distance.values)
            return Difference(_STAGE, names[path], (values[0], values[1]), distance.relative, ranks)
    for path, name in names.items():
        if (path in one) != (path in other):
            texts = {True: "numbers", False: "none"}
            return Difference(_STAGE, name, (texts[path in one], texts[path in other]), rank=ranks)
    return None
