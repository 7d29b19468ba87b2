"""A verdict follows what a script does: where `failing` and `fixed` change places, every cell of them turns.

A seeded sample of the catalogue, on the CPU and the stack `current`; with `--all-cells` all of it. The seed is printed,
and `REPROS_SABOTAGE_SEED` sets it, so that what failed once can be had again.
"""

from __future__ import annotations

import ast
import io
import os
import random
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine.catalogue import load
from repros.engine.judge import judge
from repros.engine.launch import Servers, run
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.engine.probe import probe
from repros.model import Cell, Device, Outcome, Verdict

SAMPLE = 4
"""Repros, that is twice as many cells: under half a minute on two idle cores, most of it imports."""
TURNED = {"failing": Verdict.GONE, "fixed": Verdict.UNFIXED}
"""What becomes of each variant's cell once it does what the other one did."""
EXCHANGED = {"failing": "fixed", "fixed": "failing", "Failing": "Fixed", "Fixed": "Failing"}


def sabotaged(source: str) -> str:
    """Return a script whose definitions `failing` and `fixed` (or `Failing` and `Fixed`) have each other's bodies.

    Their names are exchanged in all that is defined beside `main`, and nowhere else: what chooses a variant by its name
    gets the other one's body, and what is built upon either is still built upon the same.
    """
    defined = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    inside = {
        line for node in defined if node.name != "main" for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    tokens = [
        (token.type, EXCHANGED.get(token.string, token.string) if token.start[0] in inside else token.string)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    ]
    return tokenize.untokenize(tokens)


def test_the_sabotage_exchanges_bodies_and_nothing_else() -> None:
    script = """class Base: pass
class Failing(Base): pass
class Fixed(Failing): pass
VARIANTS = {"failing": Failing, "fixed": Fixed}
def fixed(): return failing() + "fixed"
def main(variant="failing"): return VARIANTS[variant]
"""
    expected = """class Base: pass
class Fixed(Base): pass
class Failing(Fixed): pass
VARIANTS = {"failing": Failing, "fixed": Fixed}
def failing(): return fixed() + "fixed"
def main(variant="failing"): return VARIANTS[variant]
"""
    assert ast.dump(ast.parse(sabotaged(script))) == ast.dump(ast.parse(expected))


def pairs(places: tuple[Path, ...] = ()) -> Iterator[tuple[CellSpec, CellSpec]]:
    """Yield the failing and the fixed cell of each repro that a warm server launches on the CPU."""
    catalogue = load(places) if places else load()
    for repro in catalogue:
        chosen = Selection(repros=(repro.id,), variants=("failing", "fixed"), devices=(Device.CPU,))
        if Device.CPU not in repro.devices:
            continue
        specs = [spec for spec in select(catalogue, chosen) if spec.strategy not in repro.cold]
        by_name = {spec.variant.name: spec for spec in reversed(specs)}
        if len(by_name) == len(TURNED):
            yield by_name["failing"], by_name["fixed"]


def test_verdicts_turn_when_failing_and_fixed_change_places(
    request: pytest.FixtureRequest, current_python: Path, tmp_path: Path
) -> None:
    seed = int(os.environ.get("REPROS_SABOTAGE_SEED") or random.SystemRandom().randrange(10_000))
    print(f"REPROS_SABOTAGE_SEED={seed}")
    environment = probe(current_python, "current", sim=False)
    catalogue = tmp_path / "catalogue"
    for failing, _ in pairs():
        copy = catalogue / failing.repro.family / failing.repro.path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(sabotaged(failing.repro.path.read_text("utf-8")), "utf-8")
    planned = [plan(pair, lambda _: [environment]) for pair in pairs((catalogue,))]
    affected = [
        cells
        for cells in planned
        if all(isinstance(item, Cell) for item in cells) and cells[0].expectation.outcome is Outcome.FAILS  # type: ignore[union-attr]
    ]
    everything = request.config.getoption("--all-cells")
    chosen = affected if everything else random.Random(seed).sample(affected, SAMPLE)  # noqa: S311 - nothing to keep secret
    with Servers(tmp_path / "servers") as servers:
        results = [
            judge(cell, run(cell, tmp_path / f"{cell.repro.id}-{cell.variant.name}", servers=servers))
            for cells in chosen
            for cell in cells
            if isinstance(cell, Cell)
        ]
    told = {(result.cell.repro.id, result.cell.variant.name): (result.verdict, result.reason) for result in results}
    wrong = {key: seen for key, seen in told.items() if seen[0] is not TURNED[key[1]]}
    assert not wrong, f"with REPROS_SABOTAGE_SEED={seed}"
    assert len(told) == 2 * len(chosen) >= 2 * SAMPLE
