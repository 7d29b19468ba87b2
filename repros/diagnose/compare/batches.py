"""The batches of two steps, compared as sets of rows: in which rank, pass or place a row comes is no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from repros.diagnose.compare.inside.calls import LOADER
from repros.diagnose.compare.recording import Step

_MOST_NAMED = 4


@dataclass(frozen=True)
class Row:
    """One row that a module was given."""

    key: str
    """The hash of its bytes."""
    numbers: tuple[float, ...]
    """Its sum, the sum of its absolute values, and the sum weighted by place."""
    place: str
    """Where in its step it is."""


@dataclass
class Seen:
    """The rows that a run was given so far, in steps or in evaluations: by hash, where each came first."""

    rows: dict[str, str] = field(default_factory=dict)

    def add(self, where: str, rows: Sequence[Row]) -> None:
        """Add those of a step or an evaluation."""
        for row in rows:
            self.rows.setdefault(row.key, f"{where}, {row.place}")


@dataclass(frozen=True)
class BatchGap:
    """How two batches differ."""

    text: str
    values: tuple[str, str]


def passes_of(step: Step) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield the passes of a step with their rank and their number."""
    for rank, recorded in enumerate(step.ranks):
        for number, each in enumerate(recorded["passes"]):
            yield rank, number, each


def common_inputs(one: Step, other: Step) -> list[str]:
    """Return the modules whose inputs are the batch: the outermost ones, or the first that both runs have called."""
    names = [dict.fromkeys(name for _, _, each in passes_of(step) for name in each["inputs"]) for step in (one, other)]
    roots = [{name for _, _, each in passes_of(step) for name in each["roots"]} for step in (one, other)]
    common = [name for name in names[0] if name in names[1]]
    outermost = [name for name in common if name in roots[0] & roots[1]]
    # Those of a module that got its inputs as keywords are known only after those of the modules in it.
    return outermost or sorted(common, key=lambda name: name.count("."))[:1]


def renamed(one: Step, other: Step) -> Step:
    """Return the second of two steps with the first's name for its outermost module, if that is of another class.

    An outermost module is known by its class. Where each step calls one, or methods of one, that the other does not,
    and all other modules have the same names in both, it counts as the same.
    """
    roots = [{_object(name) for _, _, each in passes_of(step) for name in each["roots"]} for step in (one, other)]
    only = roots[0] - roots[1], roots[1] - roots[0]
    if len(only[0]) != 1 or len(only[1]) != 1:
        return other
    (mine,), (theirs,) = only
    called = [{name for _, _, each in passes_of(step) for name in each["outputs"]} for step in (one, other)]
    if called[0] != {_renamed(name, theirs, mine) for name in called[1]}:
        return other
    ranks = [{**rank, "passes": [_with_names(each, theirs, mine) for each in rank["passes"]]} for rank in other.ranks]
    return replace(other, ranks=tuple(ranks))


def _object(name: str) -> str:
    """Return whose call a name is of: the module's own, or that of a method such as `Accuracy.compute()`."""
    return name.rpartition(".")[0] if name.endswith(")") else name


def _renamed(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if _object(name) == old else name


def _with_names(each: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    fields = {
        field: {_renamed(name, old, new): value for name, value in each[field].items()}
        for field in ("inputs", "outputs")
    }
    return {**each, **fields, "roots": [_renamed(name, old, new) for name in each["roots"]]}


def rows_of(step: Step, name: str) -> list[Row]:
    """Return the rows that a module was given in a step, in all ranks and passes."""
    ranks = len(step.ranks)
    found = []
    for rank, number, each in passes_of(step):
        given = each["inputs"].get(name)
        for row, (key, *numbers) in enumerate(given["rows"] if given else ()):
            where = [f"rank {rank}"] if ranks > 1 else []
            where += [f"pass {number + 1}"] if len(step.ranks[rank]["passes"]) > 1 else []
            found.append(Row(key, tuple(numbers), ", ".join([*where, f"row {row + 1}"])))
    return found


def are_in_order(one: Step, other: Step, names: Sequence[str]) -> bool:
    """Return whether two steps have the same ranks and passes, and each the same rows in the same order."""
    shapes = [[len(rank["passes"]) for rank in step.ranks] for step in (one, other)]
    if shapes[0] != shapes[1]:
        return False
    rows = [[[(row.key, row.place) for row in rows_of(step, name)] for name in names] for step in (one, other)]
    return rows[0] == rows[1]


def compare_batches(
    name: str, one: Step, other: Step, seen: tuple[Seen, Seen], tolerance: float
) -> tuple[BatchGap | None, bool]:
    """Return how the rows differ that a module was given, None if they do not, and whether their bits are the same."""
    shapes = [_shapes(step, name) for step in (one, other)]
    rows = rows_of(one, name), rows_of(other, name)
    if len(rows[0]) != len(rows[1]):
        sizes = tuple(f"{len(each)} rows" for each in rows)
        return BatchGap(f"{_title(name)}: {sizes[0]} against {sizes[1]}", (sizes[0], sizes[1])), False
    if shapes[0] != shapes[1]:
        texts = " and ".join(shapes[0]), " and ".join(shapes[1])
        return BatchGap(f"{_title(name)}: {texts[0]} against {texts[1]}", texts), False
    counts = [Counter(row.key for row in each) for each in rows]
    lacking, extra = (_beyond(rows[0], counts[1]), _beyond(rows[1], counts[0]))
    if not lacking:
        return None, True
    left = _without_near(lacking, extra, tolerance)
    if not left[0]:
        return None, False
    return _describe(name, left[0], left[1], counts, seen), False


def _title(name: str) -> str:
    """Return what a sentence calls the rows of a module, or of the loaders of a program that calls no module."""
    return "rows of the loaders" if name == LOADER else f"input of {name}"


def _shapes(step: Step, name: str) -> list[str]:
    """Return the shapes of the rows, each as text; those of the first pass, which the others have, too."""
    given = [each["inputs"][name] for _, _, each in passes_of(step) if name in each["inputs"]]
    shapes = {tuple(f"{dtype}{list(shape)}" for dtype, *shape in each["shapes"]) for each in given}
    return sorted({" ".join(each) for each in shapes})


def _beyond(rows: Sequence[Row], others: Mapping[str, int]) -> list[Row]:
    """Return the rows that the others do not have, or not as often."""
    left = dict(others)
    found = []
    for row in rows:
        if left.get(row.key, 0) > 0:
            left[row.key] -= 1
        else:
            found.append(row)
    return found


def _without_near(lacking: list[Row], extra: list[Row], tolerance: float) -> tuple[list[Row], list[Row]]:
    """Return the rows for which the other run has none that is equal but for rounding."""
    rest = list(extra)
    left = []
    for row in lacking:
        size = max(row.numbers[1], 1e-300)
        near = (each for each in rest if _distance(row, each) <= tolerance * size)
        match = next(near, None)
        if match is None:
            left.append(row)
        else:
            rest.remove(match)
    return left, rest


def _distance(one: Row, other: Row) -> float:
    return max(abs(mine - theirs) for mine, theirs in zip(one.numbers, other.numbers, strict=True))


def _describe(
    name: str, lacking: list[Row], extra: list[Row], counts: Sequence[Counter[str]], seen: tuple[Seen, Seen]
) -> BatchGap:
    twice = [row for row in extra if counts[1][row.key] > 1]
    again = [row for row in extra if row.key in seen[1].rows]
    before = [row for row in lacking if row.key in seen[1].rows]
    rows = sum(counts[0].values())
    said = [f"{_title(name)}: {len(lacking)} of {rows} rows of the first run are not in the second's batch"]
    if twice:
        said.append(f"the second run has {_places(twice)} more than once")
    elif again:
        said.append(f"the second run has seen {_places(again)} before ({seen[1].rows[again[0].key]})")
    if before:
        said.append(f"it has seen {_places(before)} of the first run at {seen[1].rows[before[0].key]}")
    return BatchGap("; ".join(said), (_places(lacking), _places(extra)))


def _places(rows: Sequence[Row]) -> str:
    names = [row.place for row in rows[:_MOST_NAMED]]
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f"{' and '.join(names) if len(names) < 3 else ', '.join(names)}{more}"  # noqa: PLR2004 - two read as a pair
