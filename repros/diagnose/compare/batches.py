"""Compare the batches of two steps as sets of rows, independent of rank, pass and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from repros.diagnose.compare.difference import Difference
from repros.diagnose.compare.inside.calls import LOADER
from repros.diagnose.compare.recording import RecordedStep

_MOST_NAMED = 4


@dataclass(frozen=True)
class Row:
    """One row of a module's input."""

    key: str
    """The hash of its bytes."""
    numbers: tuple[float, ...]
    """Its sum, the sum of its absolute values, and the sum weighted by position."""
    location: str
    """Its rank, pass and number in the step."""


@dataclass
class SeenRows:
    """The rows of a run so far, in steps or in evaluations."""

    rows: dict[str, str] = field(default_factory=dict)
    """The step and location of each row's first occurrence, by hash."""

    def add(self, where: str, rows: Sequence[Row]) -> None:
        """Add the rows of a step or an evaluation."""
        for row in rows:
            self.rows.setdefault(row.key, f"{where}, {row.location}")


def passes_of(step: RecordedStep) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield the passes of a step with their rank and their number."""
    for rank, recorded in enumerate(step.ranks):
        for number, one_pass in enumerate(recorded["passes"]):
            yield rank, number, one_pass


def common_inputs(one: RecordedStep, other: RecordedStep) -> list[str]:
    """Return the modules whose inputs are the batch: the outermost ones, or the first one that both runs call."""
    names = [dict.fromkeys(_names(step, "inputs")) for step in (one, other)]
    roots = [set(_names(step, "roots")) for step in (one, other)]
    common = [name for name in names[0] if name in names[1]]
    outermost = [name for name in common if name in roots[0] & roots[1]]
    # Keyword inputs of a module are recorded after the inputs of its submodules.
    return outermost or sorted(common, key=lambda name: name.count("."))[:1]


def _names(step: RecordedStep, field: str) -> Iterator[str]:
    """Yield the names of modules in a field of all passes."""
    return (name for _, _, one_pass in passes_of(step) for name in one_pass[field])


def renamed(one: RecordedStep, other: RecordedStep) -> RecordedStep:
    """Return the second of two steps with the first's name for its outermost module, if the classes differ.

    An outermost module is named after its class. If each step calls one, or its methods, that the other does not, and
    all other modules have the same names in both, the two modules are treated as the same.
    """
    roots = [{_object(name) for name in _names(step, "roots")} for step in (one, other)]
    only = roots[0] - roots[1], roots[1] - roots[0]
    if len(only[0]) != 1 or len(only[1]) != 1:
        return other
    (mine,), (theirs,) = only
    called = [set(_names(step, "outputs")) for step in (one, other)]
    if called[0] != {_renamed(name, theirs, mine) for name in called[1]}:
        return other
    ranks = [
        {**rank, "passes": [_with_names(one_pass, theirs, mine) for one_pass in rank["passes"]]} for rank in other.ranks
    ]
    return replace(other, ranks=tuple(ranks))


def _object(name: str) -> str:
    """Return the object of a call: `Accuracy` for `Accuracy` and for its method `Accuracy.compute()`."""
    return name.rpartition(".")[0] if name.endswith(")") else name


def _renamed(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if _object(name) == old else name


def _with_names(one_pass: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    fields = {
        field: {_renamed(name, old, new): value for name, value in one_pass[field].items()}
        for field in ("inputs", "outputs")
    }
    return {**one_pass, **fields, "roots": [_renamed(name, old, new) for name in one_pass["roots"]]}


def rows_of(step: RecordedStep, name: str) -> list[Row]:
    """Return the rows of a module's inputs in a step, in all ranks and passes."""
    ranks = len(step.ranks)
    rows = []
    for rank, number, one_pass in passes_of(step):
        inputs = one_pass["inputs"].get(name)
        for row, (key, *numbers) in enumerate(inputs["rows"] if inputs else ()):
            location = [f"rank {rank}"] if ranks > 1 else []
            location += [f"pass {number + 1}"] if len(step.ranks[rank]["passes"]) > 1 else []
            rows.append(Row(key, tuple(numbers), ", ".join([*location, f"row {row + 1}"])))
    return rows


def are_in_order(one: RecordedStep, other: RecordedStep, names: Sequence[str]) -> bool:
    """Return whether two steps have the same ranks and passes with the same rows in the same order."""
    shapes = [[len(rank["passes"]) for rank in step.ranks] for step in (one, other)]
    if shapes[0] != shapes[1]:
        return False
    rows = [[[(row.key, row.location) for row in rows_of(step, name)] for name in names] for step in (one, other)]
    return rows[0] == rows[1]


def compare_batches(
    name: str, one: RecordedStep, other: RecordedStep, seen: tuple[SeenRows, SeenRows], tolerance: float
) -> tuple[Difference | None, bool]:
    """Return the difference between a module's inputs, if any, and whether they are bitwise equal."""
    shapes = [_shapes(step, name) for step in (one, other)]
    rows = rows_of(one, name), rows_of(other, name)
    if len(rows[0]) != len(rows[1]):
        sizes = tuple(f"{len(of_run)} rows" for of_run in rows)
        text = f"batch: {_title(name)}: {sizes[0]} against {sizes[1]}"
        numbers = len(rows[0]), len(rows[1])
        return Difference("batch", text, (sizes[0], sizes[1]), rows=numbers), False
    if shapes[0] != shapes[1]:
        texts = " and ".join(shapes[0]), " and ".join(shapes[1])
        return Difference("batch", f"batch: {_title(name)}: {texts[0]} against {texts[1]}", texts), False
    counts = [Counter(row.key for row in of_run) for of_run in rows]
    missing, extra = _not_in(rows[0], counts[1]), _not_in(rows[1], counts[0])
    if not missing:
        return None, True
    missing, extra = _without_near(missing, extra, tolerance)
    if not missing:
        return None, False
    return _describe(name, missing, extra, counts, seen), False


def _title(name: str) -> str:
    """Return the name of a module's rows in a sentence, or of the loaders' rows if the program calls no module."""
    return "rows of the loaders" if name == LOADER else f"input of {name}"


def _shapes(step: RecordedStep, name: str) -> list[str]:
    """Return the shapes of the rows in the passes of a step, as text."""
    inputs = [one_pass["inputs"][name] for _, _, one_pass in passes_of(step) if name in one_pass["inputs"]]
    return sorted({" ".join(f"{dtype}{list(shape)}" for dtype, *shape in one["shapes"]) for one in inputs})


def _not_in(rows: Sequence[Row], others: Mapping[str, int]) -> list[Row]:
    """Return the rows that the others lack, or have less often."""
    rest = dict(others)
    missing = []
    for row in rows:
        if rest.get(row.key, 0) > 0:
            rest[row.key] -= 1
        else:
            missing.append(row)
    return missing


def _without_near(missing: list[Row], extra: list[Row], tolerance: float) -> tuple[list[Row], list[Row]]:
    """Return the rows without those that are equal to one of the other run up to rounding."""
    rest = list(extra)
    unmatched = []
    for row in missing:
        size = max(row.numbers[1], 1e-300)
        match = next((other for other in rest if _distance(row, other) <= tolerance * size), None)
        if match is None:
            unmatched.append(row)
        else:
            rest.remove(match)
    return unmatched, rest


def _distance(one: Row, other: Row) -> float:
    return max(abs(mine - theirs) for mine, theirs in zip(one.numbers, other.numbers, strict=True))


def _describe(
    name: str, missing: list[Row], extra: list[Row], counts: Sequence[Counter[str]], seen: tuple[SeenRows, SeenRows]
) -> Difference:
    twice = [row for row in extra if counts[1][row.key] > 1]
    again = [row for row in extra if row.key in seen[1].rows]
    before = [row for row in missing if row.key in seen[1].rows]
    rows = sum(counts[0].values())
    clauses = [f"{_title(name)}: {len(missing)} of {rows} rows of the first run are not in the second's batch"]
    if twice:
        clauses.append(f"the second run has {_locations(twice)} more than once")
    elif again:
        clauses.append(f"the second run has seen {_locations(again)} before ({seen[1].rows[again[0].key]})")
    if before:
        clauses.append(f"it has seen {_locations(before)} of the first run at {seen[1].rows[before[0].key]}")
    values = _locations(missing), _locations(extra)
    if values[0] == values[1]:  # the same places: what is in them differs
        values = _with_sums(missing), _with_sums(extra)
    return Difference("batch", f"batch: {'; '.join(clauses)}", values)


def _with_sums(rows: Sequence[Row]) -> str:
    """Return the first places with the sums by which their rows differ."""
    return _locations([replace(row, location=f"{row.location} (sum {row.numbers[0]:.9g})") for row in rows])


def _locations(rows: Sequence[Row]) -> str:
    names = [row.location for row in rows[:_MOST_NAMED]]
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f"{' and '.join(names) if len(names) < 3 else ', '.join(names)}{more}"  # noqa: PLR2004 - two read as a pair
