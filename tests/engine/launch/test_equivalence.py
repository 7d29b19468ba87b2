"""A cell gets the same verdict and the same signature however it is launched.

A cheap part of the catalogue by default, on the CPU and the stack `current`; with `--all-cells` every cell that can be
launched both ways on this machine, on `current` and on its repro's home.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from repros.engine.cells import is_warm, observe
from repros.engine.environment import Targets, prepare
from repros.engine.judge import judge
from repros.engine.launch import Servers
from repros.engine.plan import CellSpec, Selection, plan, select, stack_names
from repros.model import Cell, Environment, Verdict
from tests.package_catalogue import load

CHEAP = {
    # two ranks connected only by the launcher's environment variables
    ("RPR-0005", "failing", "ddp", "cpu"),
    ("RPR-0005", "fixed", "ddp", "cpu"),
    # one process
    ("RPR-0010", "failing", "auto", "cpu"),
    ("RPR-0010", "fixed", "auto", "cpu"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-cells")
    chosen = [
        pytest.param(spec, stack, id="-".join((*_key(spec), stack)))
        for spec in select(load(), Selection())
        for stack in stack_names(spec.repro.home, ["current", "home"])
        if everything or (_key(spec) in CHEAP and stack == "current")
    ]
    metafunc.parametrize(("spec", "stack"), chosen)


def _key(spec: CellSpec) -> tuple[str, str, str, str]:
    return spec.repro.id, spec.variant.name, spec.strategy, spec.device.value


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers(tmp_path_factory.mktemp("servers")) as found:
        yield found


@lru_cache
def _environment(stack: str, python: Path | None, *, sim: bool) -> Environment:
    """Make and probe an environment; one spec on `sim` is enough to have the accelerator built."""
    specs = [spec for spec in select(load(), Selection()) if (spec.device == "sim") == sim]
    where = Targets(python=python) if python else Targets(stacks=(stack,))
    with prepare(specs[:1], where, print) as environments:
        return environments(specs[0].repro)[0]


@pytest.mark.long(keep=3)
def test_cold_and_warm_give_the_same_verdict_and_signature(
    spec: CellSpec, stack: str, servers: Servers, current_python: Path, tmp_path: Path
) -> None:
    environment = _environment(stack, current_python if stack == "current" else None, sim=spec.device == "sim")
    (cell,) = plan([spec], lambda _: [environment])
    if not isinstance(cell, Cell):
        pytest.skip(cell.reason)
    if not is_warm(cell):
        pytest.skip("the launcher is part of the failure")
    cold, warm = (
        judge(cell, observe(cell, tmp_path / "cold")),
        judge(cell, observe(cell, tmp_path / "warm", servers=servers)),
    )
    assert (warm.verdict, warm.signature) == (cold.verdict, cold.signature), (cold.reason, warm.reason)
    assert cold.verdict in {Verdict.REPRODUCED, Verdict.CLEAN}, cold.reason
