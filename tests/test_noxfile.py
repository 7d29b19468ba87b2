"""The noxfile, read and not run: nox is no dependency of the tests."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from repros.engine.catalogue import load
from repros.engine.results_file import LATEST

ROOT = Path(__file__).parents[1]
NOXFILE = ROOT / "noxfile.py"


def constant(name: str) -> Any:
    """Return what the noxfile assigns to a name at its top, of what it imports at most `json` and `re`."""
    assigned = (node for node in ast.parse(NOXFILE.read_text()).body if isinstance(node, ast.Assign))
    value = next(node.value for node in assigned if ast.unparse(node.targets[0]) == name)
    return eval(ast.unparse(value), {"HERE": ROOT, "json": json, "re": re})  # noqa: S307 - this project's own file


def test_every_strategy_of_the_catalogue_has_its_session() -> None:
    strategies = constant("STRATEGIES")
    used = {strategy for repro in load() for variant in repro.variants for strategy in variant.strategies}
    assert sorted(used) == strategies


def test_nox_and_the_command_line_mean_the_same_file() -> None:
    assert constant("RESULTS") == str(LATEST)


def session_source(name: str) -> str:
    """Return the source of a session."""
    functions = (node for node in ast.parse(NOXFILE.read_text()).body if isinstance(node, ast.FunctionDef))
    return next(ast.unparse(node) for node in functions if node.name == name)


def test_every_test_file_belongs_to_one_session() -> None:
    apart = [file for files in constant("APART").values() for file in files]
    assert len(apart) == len(set(apart))
    assert [file for file in apart if not (ROOT / file).is_file()] == []
    for name in constant("APART"):
        assert f"*APART['{name}']" in session_source(name)
    assert "APART.values()" in session_source("tests")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    places = [*settings["testpaths"], "repros/simulated_gpus/tests"]
    assert f"'{places[-1]}'" in session_source("sim")
    files = (
        file.relative_to(ROOT).as_posix() for top in ("tests", "repros") for file in ROOT.glob(f"{top}/**/test_*.py")
    )
    assert [file for file in files if sum(file.startswith(f"{place}/") for place in places) != 1] == []


def test_continuous_integration_runs_every_session_of_tests() -> None:
    run = (ROOT / ".ci/run").read_text("utf-8")
    called = {
        name for line in re.findall(r"^(?:session|side_by_side) (.+)", run, re.MULTILINE) for name in line.split()
    }
    assert {"lint", "tests", "repro", "evidence", *constant("APART")} <= called
