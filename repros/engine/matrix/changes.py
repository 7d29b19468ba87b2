"""Changes of verdicts between two stacks, one sentence each: `RPR-0023 is gone with lightning 2.7.0`; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.matrix.check import measured_cell
from repros.model import ExpectedOutcome, Repro, Verdict
from repros.model.catalogue import Catalogue

_LONGEST = 160
"""Maximum characters of a quoted message."""
_CONTEXT = 40
"""Maximum quoted characters before the first difference."""

Pair = tuple[Measurement, Measurement]
"""The measurements of one unit on the older and on the newer stack."""


class ChangeKind(StrEnum):
    """Kinds of changes, in the order of the report."""

    GONE = "is gone"
    """The documented failure before, a clean run now."""
    NEW = "is new"
    """A clean run before, the documented failure now."""
    DIFFERENT = "ended differently"
    """The verdict `different` or `flaky`, before or now."""
    MESSAGE = "shows another message"
    """The documented failure before and now, with different signatures."""


@dataclass(frozen=True)
class VerdictChange:
    """Variants of one repro with the same change."""

    repro: Repro
    kind: ChangeKind
    variants: tuple[str, ...]
    """In the header's order."""
    packages: Mapping[str, str | None]
    """The packages that caused it, with their versions on the newer stack; None if absent there."""
    units: tuple[Unit, ...]
    """The changed units of the newer stack."""
    everywhere: bool
    """Whether the variants changed in all units that were measured on both stacks."""
    before: VariantVerdict
    after: VariantVerdict
    """Of the first variant in the first unit."""

    def __str__(self) -> str:
        """Return the sentence, as Markdown."""
        where = "" if self.everywhere else f" ({_join(_axes(unit) for unit in self.units)})"
        ends = _ends(self.before, self.after) if self.kind in _UNEXPLAINED else ""
        news = self.after.verdict in {Verdict.GONE, Verdict.REGRESSED, Verdict.UNFIXED}
        header = "; the header does not say so" if news else ""
        return f"{self._subject()} {self._verb()} {_cause(self.packages)}{where}{ends}{header}"

    def _subject(self) -> str:
        names = [f"`{name}`" for name in self.variants]
        return self.repro.id if "failing" in self.variants else f"{_join(names)} of {self.repro.id}"

    def _verb(self) -> str:
        others = [f"`{name}`" for name in self.variants if name != "failing"]
        if "failing" in self.variants:
            return f"{self.kind}, like its {_join(others)}," if others else self.kind
        many = len(others) > 1
        return {
            ChangeKind.GONE: "run clean" if many else "runs clean",
            ChangeKind.NEW: "show the failure" if many else "shows the failure",
            ChangeKind.DIFFERENT: "ended differently",
            ChangeKind.MESSAGE: "show another message" if many else "shows another message",
        }[self.kind]


_UNEXPLAINED = (ChangeKind.DIFFERENT, ChangeKind.MESSAGE)
"""Kinds that no affected range explains."""


def find_changes(catalogue: Catalogue, evidence: Evidence, old: str, new: str) -> list[VerdictChange]:
    """Return the changes from stack `old` to stack `new`, sorted by kind and id.

    Variants that were not measured on both stacks are skipped.
    """
    changes = [
        change
        for repro in catalogue
        for pairs in [pairs_of(repro, evidence, old, new)]
        for kind in ChangeKind
        for change in _changes_of(repro, pairs, kind)
    ]
    return sorted(changes, key=lambda change: ([*ChangeKind].index(change.kind), change.repro.id))


def pairs_of(repro: Repro, evidence: Evidence, old: str, new: str) -> list[Pair]:
    """Return the measurements of a repro's units on both stacks."""
    newer = [unit for unit in sorted(evidence) if unit.repro == repro.id and unit.stack == new]
    pairs = [(evidence.get(replace(unit, stack=old)), evidence[unit]) for unit in newer]
    return [(before, after) for before, after in pairs if before is not None]


def find_unmeasured(catalogue: Catalogue, evidence: Evidence, stack: str, other: str) -> list[Unit]:
    """Return the units of the catalogue that were measured on one stack and not on another."""
    ids = {repro.id for repro in catalogue}
    own = [unit for unit in sorted(evidence) if unit.stack == stack and unit.repro in ids]
    return [unit for unit in own if replace(unit, stack=other) not in evidence]


def describe_changes(catalogue: Catalogue, evidence: Evidence, old: str, new: str) -> Iterator[str]:
    """Yield Markdown: each change, the units that one stack alone has, and the number of unchanged repros."""
    changes = find_changes(catalogue, evidence, old, new)
    for change in changes:
        yield f"* {change} ({change.repro.title})"
    for stack, other in ((old, new), (new, old)):
        if unmeasured := find_unmeasured(catalogue, evidence, stack, other):
            units = _join(_unit_text(unit, evidence[unit]) for unit in unmeasured)
            yield f"* measured on {stack} and not on {other}: {units}"
    compared = [repro.id for repro in catalogue if pairs_of(repro, evidence, old, new)]
    same = len(compared) - len({change.repro.id for change in changes})
    yield f"* {same} of {len(compared)} failures that were measured on both end on {new} as on {old}"


def _changes_of(repro: Repro, pairs: Sequence[Pair], kind: ChangeKind) -> Iterator[VerdictChange]:
    """Yield at most one change of a kind, for all variants of a repro that have it."""
    changed = [
        (pair, variant.name) for variant in repro.variants for pair in pairs if _kind(pair, variant.name) is kind
    ]
    if not changed:
        return
    names = tuple(dict.fromkeys(name for _, name in changed))
    possible = [
        (pair, name) for name in names for pair in pairs if all(name in measurement.variants for measurement in pair)
    ]
    packages: dict[str, str | None] = {}
    for pair, name in changed:
        packages |= _find_causes(repro, name, pair, explained=kind not in _UNEXPLAINED)
    (before, after), first = changed[0]
    yield VerdictChange(
        repro=repro,
        kind=kind,
        variants=names,
        packages=dict(sorted(packages.items())),
        units=tuple(dict.fromkeys(pair[1].unit for pair, _ in changed)),
        everywhere=len(changed) == len(possible),
        before=before.variants[first],
        after=after.variants[first],
    )


def _kind(pair: Pair, variant: str) -> ChangeKind | None:
    """Return the kind of change of a variant; None without a change, or if not measured twice."""
    before, after = (measured.variants.get(variant) for measured in pair)
    if before is None or after is None:
        return None
    if before.verdict.ran_clean and after.verdict.ran_clean:
        return None
    if before.verdict.shows_failure and after.verdict.shows_failure:
        return ChangeKind.MESSAGE if before.signature != after.signature else None
    if before.verdict.shows_failure and after.verdict.ran_clean:
        return ChangeKind.GONE
    if before.verdict.ran_clean and after.verdict.shows_failure:
        return ChangeKind.NEW
    return ChangeKind.DIFFERENT if before != after else None


def _find_causes(repro: Repro, variant: str, pair: Pair, *, explained: bool) -> dict[str, str | None]:
    """Return the changed packages that a repro names, with their newer versions.

    With `explained`, only those whose change alone moves the versions into or out of the affected range, if there are
    any: ranges come from bisections.
    """
    before, after = ({name: _public(number) for name, number in measurement.versions.items()} for measurement in pair)
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))

    def fails(versions: Mapping[str, str]) -> bool | None:
        cell = measured_cell(repro, variant, replace(pair[1], versions=versions))
        return None if cell is None else cell.expectation.outcome is ExpectedOutcome.FAILS

    deciding = [
        name
        for name in names
        if fails(before) is not fails(after)
        and (
            fails(_swapped(before, name, after)) is fails(after)
            or fails(_swapped(after, name, before)) is fails(before)
        )
    ]
    return {name: after.get(name) for name in (deciding if explained and deciding else names)}


def _swapped(versions: Mapping[str, str], name: str, other: Mapping[str, str]) -> dict[str, str]:
    """Return versions with that of one package from another environment, in which it may be absent."""
    others = {own: number for own, number in versions.items() if own != name}
    return {**others, name: other[name]} if name in other else others


def _cause(packages: Mapping[str, str | None]) -> str:
    there = [f"{name} {number}" for name, number in packages.items() if number is not None]
    absent = [name for name, number in packages.items() if number is None]
    parts = [f"with {_join(there)}"] if there else []
    parts += [f"without {_join(absent)}"] if absent else []
    return " and ".join(parts) or "although no package that it names has another version"


def _ends(before: VariantVerdict, after: VariantVerdict) -> str:
    """Return the signatures before and now, quoted as code so that GitHub links nothing in them."""
    both = zip(before.signature or "", after.signature or "", strict=False)
    same = sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], both))
    with_verdict = before.verdict is not after.verdict
    return (
        f": {_end(before, same, with_verdict=with_verdict)} before, {_end(after, same, with_verdict=with_verdict)} now"
    )


def _end(variant: VariantVerdict, same: int, *, with_verdict: bool) -> str:
    """Return an excerpt of the signature around its first difference, and the verdict if `with_verdict`."""
    signature = (variant.signature or "").replace("`", "'")
    if not signature:
        return str(variant.verdict)
    begin = max(0, same - _CONTEXT) if len(signature) > _LONGEST else 0
    shown = signature[begin : begin + _LONGEST].strip()
    quoted = f"`{'...' if begin else ''}{shown}{'...' if len(signature) > begin + _LONGEST else ''}`"
    return f"{variant.verdict}, {quoted}" if with_verdict else quoted


def _unit_text(unit: Unit, measured: Measurement) -> str:
    variant = measured.variants.get("failing")
    return f"{unit.repro} {_axes(unit)}{f' ({variant.verdict})' if variant else ''}"


def _axes(unit: Unit) -> str:
    return f"{unit.strategy} {unit.device}"


def _public(number: str) -> str:
    """Return a version without its local build: `2.13.0` for `2.13.0+cpu`."""
    return number.partition("+")[0]


def _join(words: Iterable[str]) -> str:
    """Return `a`, `a and b`, or `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
