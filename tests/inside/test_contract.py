"""What crosses the boundary between processes is named in one place."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from repros.diagnose.watch.inside.watch import WatchOptions
from repros.inside import contract
from repros.simulated_gpus import variables

PACKAGE = Path(contract.__file__).parents[1]
SIM = PACKAGE / "simulated_gpus"
NAME = re.compile(r"\bREPROS_[A-Z][A-Z_]*[A-Z]\b")

CONTRACTS = {
    "inside/contract.py": contract,
    "simulated_gpus/variables.py": variables,
}
OWN = {
    "authoring/check/project_steps.py": "REPROS_CHECK_MEASURED",
    "model/cache/__init__.py": "REPROS_CACHE_DIR",
    "model/settings.py": "REPROS_CATALOGUE",
    "cli/run.py": "REPROS_JOBS",
    "cli/main.py": "REPROS_COMPLETE",
    "engine/environments/builds.py": "REPROS_CPU_INDEX",
    "engine/launch/reaper.py": "REPROS_RUNNER",
    "cli/shared/options.py": "REPROS_WEAK_SANDBOX",
    "scripts/doctor/targets.py": "REPROS_DOCTOR_TOKEN",
}
"""What does not reach the inside, and that of a program that may import nothing of this project."""
MESSAGES = {
    ("diagnose/watch/inside/site/sitecustomize.py", "REPROS_WATCH"),
    ("cli/shared/options.py", "REPROS_CATALOGUE"),
    ("cli/new.py", "REPROS_CATALOGUE"),
    ("cli/bisect.py", "REPROS_JOBS"),  # an option of several commands
}


def literals(path: Path) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings; those of attributes count as docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield node.value


def values(module: object) -> list[str]:
    return [value for name, value in vars(module).items() if name.isupper() and NAME.fullmatch(str(value))]


def test_a_variable_stands_in_the_code_of_its_contract_alone() -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        if SIM not in path.parents and PACKAGE / "catalogue" not in path.parents
        for text in literals(path)
        for name in NAME.findall(text.replace("_REPROS_COMPLETE", "REPROS_COMPLETE"))
    }
    declared = {("inside/contract.py", name) for name in values(contract)}
    assert found == declared | {*OWN.items()} | MESSAGES


def test_no_variable_is_declared_twice() -> None:
    names = [name for module in CONTRACTS.values() for name in values(module)] + [*OWN.values()]
    assert len(names) == len({*names}) > 15


@pytest.mark.parametrize("path", CONTRACTS)
def test_every_variable_has_a_sentence(path: str) -> None:
    body = ast.parse((PACKAGE / path).read_text("utf-8")).body
    described = [
        ast.unparse(node.targets[0])
        for node, after in pairwise(body)
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]
    assert {*values(CONTRACTS[path])} <= {getattr(CONTRACTS[path], name) for name in described}


@pytest.mark.parametrize("name", values(variables))
def test_the_simulator_reads_its_variables(name: str) -> None:
    sources = [path for path in SIM.rglob("*") if path.suffix in {".py", ".cpp", ".h"}]
    own = [path for path in sources if path.name != "variables.py" and not {"tests", "tools"} & {*path.parts}]
    assert any(f'"{name}"' in path.read_text("utf-8") for path in own)


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (None, [contract.SITE]),
        ("", [contract.SITE]),
        ("mine", [contract.SITE, "mine"]),
        (os.pathsep.join(["mine", contract.SITE, "", "yours"]), [contract.SITE, "mine", "", "yours"]),
    ],
)
def test_the_folder_comes_first_and_once_and_the_rest_stays(present: str | None, expected: list[str]) -> None:
    assert contract.python_path(present).split(os.pathsep) == expected


def test_options_arrive_as_they_were_given() -> None:
    chosen = WatchOptions("/events", 7, frozenset({"eval_mode", "state"}), frozenset({"crash"}))
    for options in (WatchOptions("/events"), chosen, chosen._replace(also=frozenset({"nan"}))):
        environ = options.to_environ()
        assert {*environ} == {*contract.WATCH_VARIABLES}
        assert WatchOptions.from_environ(environ) == options
