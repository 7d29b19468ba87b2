"""Selecting cell specs, and planning cells with the reasons of unavailable ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.plan import CellSpec, NothingToRunError, Selection, plan, select, stack_names
from repros.model import Cell, Device, Environment, ExpectedOutcome, Repro, Unavailable, Variant
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError, UnknownNameError
from tests.factories import environment, repro, requirements, variant

ONE = repro(
    "RPR-0001",
    strategies=("ddp", "ddp_spawn"),
    devices=(Device.CUDA, Device.SIM),
    home="2023-12",
    variants=(
        variant(strategies=("ddp", "ddp_spawn"), devices=(Device.CUDA, Device.SIM)),
        variant("fixed", ExpectedOutcome.PASSES, strategies=("ddp",), devices=(Device.SIM,)),
    ),
)
TWO = repro("RPR-0002", strategies=("fused_adamw",), variants=(variant(strategies=("fused_adamw",)),))
CATALOGUE = Catalogue((ONE, TWO))


def names(selection: Selection, catalogue: Catalogue = CATALOGUE) -> list[str]:
    return [f"{w.repro.id[-1]} {w.variant.name} {w.strategy} {w.device}" for w in select(catalogue, selection)]


def test_an_empty_selection_is_everything() -> None:
    assert names(Selection()) == [
        "1 failing ddp cuda",
        "1 failing ddp sim",
        "1 failing ddp_spawn cuda",
        "1 failing ddp_spawn sim",
        "1 fixed ddp sim",
        "2 failing fused_adamw cpu",
    ]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(repros=("toy_0002",)), ["2 failing fused_adamw cpu"]),
        (Selection(repros=("RPR-0002", "rpr-0002", "toy_0002")), ["2 failing fused_adamw cpu"]),
        (Selection(variants=("fixed",)), ["1 fixed ddp sim"]),
        (
            Selection(strategies=("ddp", "fused_adamw"), devices=(Device.SIM, Device.CPU)),
            ["1 failing ddp sim", "1 fixed ddp sim", "2 failing fused_adamw cpu"],
        ),
        (Selection(strategies=("ddp_spawn",), devices=(Device.CUDA,)), ["1 failing ddp_spawn cuda"]),
    ],
)
def test_a_selection_keeps_what_it_names(selection: Selection, chosen: list[str]) -> None:
    assert names(selection) == chosen


@pytest.mark.parametrize(
    ("selection", "name", "hint"),
    [
        (Selection(repros=("RPR-0008",)), "repro 'RPR-0008'", "'repros list'"),
        (Selection(variants=("fix",)), "variant 'fix'", "'fixed'"),
        (Selection(repros=("RPR-0002",), variants=("fixed",)), "variant 'fixed'", ": failing"),
        (Selection(strategies=("ddp_spwan",)), "strategy 'ddp_spwan'", "'ddp_spawn'"),
    ],
)
def test_an_unknown_name_is_refused(selection: Selection, name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"{name}.*{hint}"):
        select(CATALOGUE, selection)


def test_an_impossible_combination_is_refused_with_the_possible_ones() -> None:
    with pytest.raises(NothingToRunError) as caught:
        select(CATALOGUE, Selection(repros=("RPR-0001",), strategies=("fused_adamw",)))
    assert "RPR-0001 runs under ddp, ddp_spawn on cuda, sim" in str(caught.value)


def test_an_empty_catalogue_is_refused() -> None:
    with pytest.raises(NothingToRunError):
        select(Catalogue(()), Selection())


def test_home_stands_for_each_repros_home_stack() -> None:
    assert stack_names(ONE.home, ["home", "current"]) == ["2023-12", "current"]
    assert stack_names(TWO.home, ["home", "current"]) == ["current"]


def planned(spec: CellSpec, *environments: Environment) -> list[Cell | Unavailable]:
    return plan([spec], lambda _: environments)


def reason(device: Device, where: Environment, wanted: Repro = ONE, variant_: Variant | None = None) -> str | None:
    (item,) = planned(CellSpec(wanted, variant_ or wanted.variants[0], "ddp", device), where)
    return item.reason if isinstance(item, Unavailable) else None


def test_every_environment_gets_a_cell() -> None:
    cells = planned(CellSpec(TWO, TWO.variants[0], "ddp", Device.CPU), environment("2023-12"), environment("current"))
    assert [item.label for item in cells if isinstance(item, Cell)] == [
        "RPR-0002 failing ddp cpu 2023-12",
        "RPR-0002 failing ddp cpu current",
    ]


SIM = {Device.SIM: 99, Device.CPU: 2, Device.CUDA: 1}


@pytest.mark.parametrize(
    ("where", "device"),
    [
        (environment(counts=SIM), Device.SIM),
        (environment(counts=SIM), Device.CUDA),
        (environment(broken="stack current: no network"), Device.SIM),
        (environment(absent={Device.SIM: "needs g++: apt install g++"}), Device.SIM),
        (environment(counts={Device.CUDA: 0}), Device.CUDA),
        (environment(versions={}), Device.SIM),
        (environment(counts=SIM, versions={"torch": "2.0.1"}), Device.SIM),
    ],
)
def test_an_unavailable_cell_has_a_reason(where: Environment, device: Device, sentences: SnapshotAssertion) -> None:
    assert reason(device, where) == sentences


@pytest.mark.parametrize(
    ("where", "missing"),
    [
        (
            environment("current", absent={Device.CUDA: "this torch is a build without CUDA"}),
            "this torch is a build without CUDA",
        ),
        (environment("current", counts={Device.CPU: 2}), ""),
        (environment("current", counts={Device.CPU: 2, Device.CUDA: 0}), ""),
        (environment("current", broken="no network"), "no network"),
    ],
)
@pytest.mark.parametrize("device", [Device.CPU, Device.CUDA])
def test_a_missing_device_that_is_required_is_refused_even_if_no_cell_needs_it(
    where: Environment, missing: str, device: Device
) -> None:
    spec = CellSpec(TWO, TWO.variants[0], "ddp", device)
    with pytest.raises(ReprosError) as refused:
        plan([spec], lambda _: [environment("2023-12", counts=SIM), where], [Device.CPU, Device.CUDA])
    required = "cpu" if missing == "no network" else "cuda"
    assert str(refused.value).startswith(f"{required} ")
    assert "(current)" in str(refused.value)
    assert not missing or missing in str(refused.value)


def test_a_required_device_that_is_there_changes_nothing() -> None:
    spec = CellSpec(TWO, TWO.variants[0], "ddp", Device.CPU)
    here = [environment(counts=SIM)]
    assert plan([spec], lambda _: here, [*SIM]) == plan([spec], lambda _: here)


def test_an_unmet_requirement_is_named_with_the_installed_version() -> None:
    needy = variant(requires=requirements("lightning>=2.2"))
    assert reason(Device.CPU, environment(), variant_=needy) == "needs lightning>=2.2 (found 2.1.3)"
    unmet = repro(dependencies=requirements("torch>=2.1", "accelerate>=1"))
    assert reason(Device.CPU, environment(), wanted=unmet) == "needs accelerate>=1 (found none)"


def test_fewer_gpus_than_ranks_are_enough_down_to_the_minimum() -> None:
    def ranks(minimum: int, gpus: int) -> int | str:
        spec = repro(processes=4, minimum=minimum)
        (item,) = planned(CellSpec(spec, spec.variants[0], "ddp", Device.CUDA), environment(counts={Device.CUDA: gpus}))
        return item.reason if isinstance(item, Unavailable) else item.processes

    assert [ranks(1, 1), ranks(2, 3), ranks(4, 8)] == [1, 3, 4]
    assert re.findall(r"\d", str(ranks(4, 3))) == ["4", "3"], "those that it needs, and those here"


def test_ranks_on_the_cpu_need_no_devices() -> None:
    (item,) = planned(CellSpec(TWO, TWO.variants[0], "ddp", Device.CPU), environment(counts={Device.CPU: 1}))
    assert isinstance(item, Cell)
    assert item.processes == 2


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("torch>=2.13", True),  # a local version is one of its release
        ("Torch==2.13.0", True),
        ("torch<2.13", False),
        ("lightning[extra]>=2.1", True),
        ("python>=3.9", True),
        ("python<3.11", False),
        ("absent", False),
        ("absent; python_version < '3.0'", True),
        ("lightning>=3; python_version >= '3.0'", False),
        ("odd", True),
        ("odd>=1", False),
        ("nightly>=2.14.0.dev1", True),
    ],
)
def test_an_environment_satisfies_a_requirement(text: str, *, holds: bool) -> None:
    versions = {
        "torch": "2.13.0+cpu",
        "lightning": "2.1.3",
        "odd": "build-of-monday",
        "nightly": "2.14.0.dev20260101",
    }
    where = Environment("here", Path("python"), "3.11.9", versions)
    assert where.holds(requirements(text)[0]) is holds
