"""A job is run without the catalogue: what may be imported below a cell, and a program that is no repro."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine.launch import Job, run
from repros.engine.launch.environ import for_device
from repros.model import Device, Ending, Observation
from tests.test_layers import FILES, graph

LAUNCH = "repros.engine.launch"
CATALOGUE = {"Repro", "Variant", "Cell", "Expectation", "Signature", "CellSpec", "CellResult", "Unavailable", "Verdict"}


def names_from_model(module: str) -> Iterator[str]:
    """Yield the names that a module imports from the model."""
    for node in ast.walk(ast.parse(FILES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("repros.model"):
            yield from (alias.name for alias in node.names)


def modules_of(package: str) -> set[str]:
    found = {module for module in FILES if module == package or module.startswith(f"{package}.")}
    assert found
    return found


def test_launch_imports_nothing_of_a_cell_or_a_repro() -> None:
    names = {module: {*names_from_model(module)} & CATALOGUE for module in modules_of(LAUNCH)}
    assert {module: found for module, found in names.items() if found} == {}
    above = {other for module in modules_of(LAUNCH) for other in graph()[module] if other.startswith("repros.engine")}
    assert above <= modules_of(LAUNCH)


@pytest.mark.parametrize("package", ["repros.scripts.try_", "repros.scripts.reduce", "repros.scripts.bisect.script"])
def test_a_script_is_run_without_the_judge(package: str) -> None:
    used = {other for module in modules_of(package) for other in graph()[module]}
    assert not used & {"repros.engine.judge", "repros.engine.cells"}
    assert not {name for module in modules_of(package) for name in names_from_model(module)} & (
        CATALOGUE - {"Signature", "Repro"}
    )


def run_source(source: str, folder: Path, deadline: float = 60.0) -> Observation:
    script = folder / "script.py"
    script.write_text(source, "utf-8")
    job = Job(
        python=Path(sys.executable),
        arguments=(str(script), "a word"),
        script=script,
        environ=for_device(Device.CPU, 1, on_stack=False),
        deadline=deadline,
        output_folders=("made",),
    )
    return run(job, folder / "run")


def test_a_job_gives_an_observation(tmp_path: Path) -> None:
    observation = run_source("import sys\nprint(sys.argv[1])\nraise LookupError('as it says')\n", tmp_path)
    (process,) = observation.processes
    assert (process.ending, process.chain[0].message) == (Ending.RAISED, "as it says")
    assert (tmp_path / "run/main.log").read_text("utf-8").startswith("a word\n")
    assert (tmp_path / "run/made").is_dir()


def test_a_deadlock_is_not_looked_for_unless_it_is_expected(tmp_path: Path) -> None:
    observation = run_source("import threading\nthreading.Event().wait()\n", tmp_path, deadline=2.0)
    assert [process.ending for process in observation.processes] == [Ending.TIMED_OUT]
    assert observation.deadlock is None
