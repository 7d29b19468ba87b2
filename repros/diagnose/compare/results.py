"""What the programs themselves got from calls that are no modules': the effects of all else, compared in their order.

A collective's result, a tensor that is read as Python's numbers, a row of a data set, tokens, a batch: they are looked
at where everything that comes of a training is the same, bit for bit, so that no rounding is in them. One of two runs
may print more than the other; so results of a kind are compared between two steps in which all ranks of both runs got
equally many of it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from repros.diagnose.compare.differ import Difference
from repros.diagnose.compare.layout import Pair, differing_kinds
from repros.diagnose.compare.measure import Ruler
from repros.diagnose.compare.recording import Step
from repros.diagnose.compare.tolerance import Tolerance

_STAGE = "result"


def compare_results(one: Step, other: Step, *, exact: bool) -> tuple[Difference | None, int]:
    """Return the first difference in what two runs got between two steps, and how many results were compared.

    Args:
        one: what the reference got.
        other: what the other run got there.
        exact: whether every bit counts.
    """
    if len(one.ranks) != len(other.ranks) or one.ranks[0]["world"] != other.ranks[0]["world"]:
        return None, 0
    compared = 0
    of_ranks = [_in_pairs(*pair) for pair in zip(one.ranks, other.ranks, strict=True)]
    # The n-th results of all ranks together: what one rank has drawn comes before what it has sent to the others.
    for pairs in itertools.zip_longest(*of_ranks):
        for rank, pair in enumerate(pairs):
            if pair is None:
                continue
            compared += 1
            where = f"rank {rank}" if len(pairs) > 1 else None
            title, mine, theirs = pair
            found = _difference(title, mine, theirs, where, max(one.number, 1), exact=exact)
            if found is not None:
                return found, compared
    return None, compared


def _in_pairs(
    mine: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the results of one rank in pairs, each with a name; a repeated name gets its number."""
    others = {
        kind: iter([each for each in theirs["results"] if each["kind"] == kind])
        for kind, number in mine["counts"].items()
        if theirs["counts"].get(kind) == number
    }
    seen: Counter[str] = Counter()
    for each in mine["results"]:
        title = f"{each['what']} in {each['in']}" if each["in"] else each["what"]
        seen[title] += 1
        other = next(others.get(each["kind"], iter(())), None)
        if other is not None:
            yield title if seen[title] == 1 else f"{title} ({seen[title]})", each["values"], other["values"]


def _difference(
    title: str, one: Mapping[str, Any], other: Mapping[str, Any], ranks: str | None, number: int, *, exact: bool
) -> Difference | None:
    """Return the first difference of two results: of what both have, else which numbers one alone has."""
    names = {path: f"result {path} of {title}" if path else f"result of {title}" for path in (*one, *other)}
    ruler = Ruler(exact=exact)
    ruler.begin(Tolerance("float32", 1, 1, number))
    for path in (path for path in one if path in other):
        pair = Pair(title, one[path], other[path], ranks, key=f"{title} {path}")
        if any("unread" in each for each in (pair.one, pair.other)):
            continue
        kinds = differing_kinds(pair.one, pair.other)
        if kinds is not None:
            return Difference(_STAGE, names[path], kinds, rank=ranks)
        gap = ruler.judge(_STAGE, pair)
        if gap is not None:
            values = tuple(f"{gap.measure} {value:.9g}" for value in gap.values)
            return Difference(_STAGE, names[path], (values[0], values[1]), gap.relative, ranks)
    for path, name in names.items():
        if (path in one) != (path in other):
            texts = {True: "numbers", False: "none"}
            return Difference(_STAGE, name, (texts[path in one], texts[path in other]), rank=ranks)
    return None
