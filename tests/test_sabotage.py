"""Verdicts follow what a script does: if `failing` and `fixed` exchange their bodies, every verdict changes.

The test takes a random sample of the catalogue on the CPU and the stack `current`, or with `--all-cells` all of it. It
prints the sample's seed; `REPROS_SABOTAGE_SEED` sets it, to repeat a failure.
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
from repros.engine.cells import observe
from repros.engine.judge import judge
from repros.engine.launch import Servers
from repros.engine.plan import CellSpec, Selection, plan, select
from repros.engine.probe import probe
from repros.model import Cell, Device, ExpectedOutcome, Verdict

SAMPLE = 4
"""Number of repros, two cells each: under half a minute on two idle cores, most of it imports."""
EXPECTED = {"failing": Verdict.GONE, "fixed": Verdict.UNFIXED}
"""Each variant's verdict once it does what the other one did."""
EXCHANGED = {"failing": "fixed", "fixed": "failing", "Failing": "Fixed", "Fixed": "Failing"}


def exchange_bodies(source: str) -> str:
    """Return a script whose definitions `failing` and `fixed` (or `Failing` and `Fixed`) have each other's bodies.

    The names are exchanged in every definition except `main`, and nowhere else: code that selects a variant by its name
    gets the other one's body, and a definition that uses either still uses the same body.
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


def test_only_bodies_are_exchanged() -> None:
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
    assert ast.dump(ast.parse(exchange_bodies(script))) == ast.dump(ast.parse(expected))


def pairs(places: tuple[Path, ...] = ()) -> Iterator[tuple[CellSpec, CellSpec]]:
    """Yield the specs of the failing and the fixed cell of each repro that is launched warm on the CPU."""
    catalogue = load(places) if places else load()
    for repro in catalogue:
        chosen = Selection(repros=(repro.id,), variants=("failing", "fixed"), devices=(Device.CPU,))
        if Device.CPU not in repro.devices:
            continue
        specs = [spec for spec in select(catalogue, chosen) if spec.strategy not in repro.cold]
        by_name = {spec.variant.name: spec for spec in reversed(specs)}
        if len(by_name) == len(EXPECTED):
            yield by_name["failing"], by_name["fixed"]


@pytest.mark.timeout(1200)  # on a busy machine: the engine's own deadlines end a cell that hangs
def test_verdicts_change_when_failing_and_fixed_exchange_their_bodies(
    request: pytest.FixtureRequest, current_python: Path, tmp_path: Path
) -> None:
    seed = int(os.environ.get("REPROS_SABOTAGE_SEED") or random.SystemRandom().randrange(10_000))
    print(f"REPROS_SABOTAGE_SEED={seed}")
    environment = probe(current_python, "current", sim=False)
    catalogue = tmp_path / "catalogue"
    for failing, _ in pairs():
        copy = catalogue / failing.repro.family / failing.repro.path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(exchange_bodies(failing.repro.path.read_text("utf-8")), "utf-8")
    planned = [plan(pair, lambda _: [environment]) for pair in pairs((catalogue,))]
    affected = [
        cells
        for cells in planned
        if all(isinstance(item, Cell) for item in cells) and cells[0].expectation.outcome is ExpectedOutcome.FAILS  # type: ignore[union-attr]
    ]
    everything = request.config.getoption("--all-cells")
    chosen = affected if everything else random.Random(seed).sample(affected, SAMPLE)  # noqa: S311 - not a secret
    with Servers(tmp_path / "servers") as servers:
        results = [
            judge(cell, observe(cell, tmp_path / f"{cell.repro.id}-{cell.variant.name}", servers=servers))
            for cells in chosen
            for cell in cells
            if isinstance(cell, Cell)
        ]
    verdicts = {(result.cell.repro.id, result.cell.variant.name): (result.verdict, result.reason) for result in results}
    wrong = {key: verdict for key, verdict in verdicts.items() if verdict[0] is not EXPECTED[key[1]]}
    assert not wrong, f"with REPROS_SABOTAGE_SEED={seed}"
    assert len(verdicts) == 2 * len(chosen) >= 2 * SAMPLE
