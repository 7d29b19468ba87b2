"""The noxfile, read and not run: nox is no dependency of the tests."""

from __future__ import annotations

import ast
from pathlib import Path

from repros.engine.catalogue import load
from repros.engine.results_file import LATEST

NOXFILE = Path(__file__).parents[1] / "noxfile.py"


def constant(name: str) -> object:
    """Return what the noxfile assigns to a name at its top."""
    assigned = (node for node in ast.parse(NOXFILE.read_text()).body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == name)


def test_every_strategy_of_the_catalogue_has_its_session() -> None:
    strategies = constant("STRATEGIES")
    assert isinstance(strategies, list)
    used = {strategy for repro in load() for variant in repro.variants for strategy in variant.strategies}
    assert used == set(strategies)


def test_nox_and_the_command_line_mean_the_same_file() -> None:
    assert constant("RESULTS") == str(LATEST)
