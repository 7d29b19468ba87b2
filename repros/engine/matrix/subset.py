"""The part of a selection that a quick check runs: stale cells, named repros, and a random sample of the others.

The unit of choice is a repro on a stack, with all its variants, strategies and devices: a failure is only understood
next to its fix.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from repros.engine.environment import Targets
from repros.engine.evidence import Evidence
from repros.engine.matrix.worklist import build_worklist
from repros.engine.plan import CellSpec
from repros.model import Repro, Stack
from repros.model.errors import refuse_unknown

_Pair = tuple[str, str]
"""A repro's id and a stack's name; the name is empty for the user's own interpreter."""


@dataclass(frozen=True)
class SubsetOptions:
    """Which part of a selection to run; the parts add up."""

    stale: bool
    """Whether to run the repros of which a cell has no fresh evidence."""
    always: tuple[str, ...]
    """Ids or slugs of repros that run in full."""
    share: float
    """Share of the others, from 0 to 1."""
    seed: str
    """Seed of the sample: the same seed draws the same repros."""


class Reason(StrEnum):
    """Why a repro runs on a stack, or not."""

    STALE = "stale"
    ALWAYS = "always"
    SAMPLED = "sampled"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Subset:
    """A part of a selection, and the number of cells by the reason why they are in it or not."""

    specs: list[CellSpec]
    targets: Targets
    cells: dict[Reason, int]


@dataclass(frozen=True)
class _ChosenTargets(Targets):
    """Targets without the stacks on which a repro is left out."""

    pairs: frozenset[_Pair] = field(default=frozenset(), repr=False)

    def stacks_of(self, repro: Repro) -> list[Stack]:
        """Return the chosen stacks of a repro."""
        return [stack for stack in super().stacks_of(repro) if (repro.id, stack.name) in self.pairs]


def draw_subset(specs: Sequence[CellSpec], targets: Targets, evidence: Evidence, options: SubsetOptions) -> Subset:
    """Return the part of a selection that the options name.

    Args:
        specs: the selection, from :func:`repros.engine.plan.select`.
        targets: where it would run as a whole.
        evidence: the recorded measurements; an interpreter of the user's has none, so all its cells are stale.
        options: the part.

    Raises:
        UnknownNameError: an unknown stack, or a repro of `always` that is not selected.
    """
    repros = {spec.repro.id: spec.repro for spec in specs}
    refuse_unknown("repro", options.always, [name for repro in repros.values() for name in (repro.id, repro.slug)])
    always = {repro.id for repro in repros.values() if not {repro.id, repro.slug}.isdisjoint(options.always)}
    counts, stale = _count_cells(specs, targets, evidence)
    reasons = dict.fromkeys(counts, Reason.LEFT_OUT)
    reasons |= {pair: Reason.STALE for pair in counts if options.stale and pair in stale}
    reasons |= {pair: Reason.ALWAYS for pair in counts if pair[0] in always}
    others = (pair for pair, reason in reasons.items() if reason is Reason.LEFT_OUT)
    reasons |= dict.fromkeys(_draw(others, options), Reason.SAMPLED)
    chosen = frozenset(pair for pair, reason in reasons.items() if reason is not Reason.LEFT_OUT)
    ids = {repro for repro, _ in chosen}
    return Subset(
        [spec for spec in specs if spec.repro.id in ids],
        targets if targets.python else _ChosenTargets(targets.stacks, None, targets.known, chosen),
        {reason: sum(counts[pair] for pair, why in reasons.items() if why is reason) for reason in Reason},
    )


def _count_cells(specs: Sequence[CellSpec], targets: Targets, evidence: Evidence) -> tuple[Counter[_Pair], set[_Pair]]:
    """Return the number of cells of each repro on each stack, and the pairs of which one is stale."""
    counts: Counter[_Pair] = Counter()
    if targets.python:
        counts.update((spec.repro.id, "") for spec in specs)
        return counts, {*counts}
    stale: set[_Pair] = set()
    by_stack: dict[str, list[CellSpec]] = {}
    for spec in specs:
        for stack in targets.stacks_of(spec.repro):
            by_stack.setdefault(stack.name, []).append(spec)
    for name, stack_specs in by_stack.items():
        for entry in build_worklist(stack_specs, [targets.known[name]], evidence).entries:
            counts[entry.unit.repro, name] += len(entry.cells)
            if not entry.fresh:
                stale.add((entry.unit.repro, name))
    return counts, stale


def _draw(pairs: Iterable[_Pair], options: SubsetOptions) -> list[_Pair]:
    """Return a sample of fixed size. A pair's place depends on itself and the seed alone, not on the other pairs."""
    ranked = sorted(pairs, key=lambda pair: hashlib.sha256(" ".join((options.seed, *pair)).encode()).digest())
    return ranked[: math.ceil(options.share * len(ranked))]
