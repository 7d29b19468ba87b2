from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from repros.engine.environments.compile import constraints, is_withdrawn
from repros.engine.stacks import load_stacks


@pytest.mark.parametrize("name", ["lightning", "pytorch-lightning", "pytorch_lightning"])
@pytest.mark.parametrize(
    ("version", "withdrawn"), [("2.6.1", False), ("2.6.2", True), ("2.6.3", True), ("2.6.4", False)]
)
def test_the_compromised_releases_are_withdrawn_under_both_names(name: str, version: str, *, withdrawn: bool) -> None:
    assert is_withdrawn(name, Version(version)) is withdrawn


def test_other_packages_are_not_withdrawn() -> None:
    assert not is_withdrawn("torchmetrics", Version("2.6.2"))


def test_the_constraints_are_requirements_that_exclude_them() -> None:
    assert [str(Requirement(line)) for line in constraints().splitlines()] == [
        "lightning!=2.6.2,!=2.6.3",
        "pytorch-lightning!=2.6.2,!=2.6.3",
    ]


def test_no_stack_contains_a_withdrawn_release() -> None:
    for stack in load_stacks().values():
        for name, pin in stack.pins.items():
            assert not is_withdrawn(name, Version(pin.version)), f"{stack.name}: {name}=={pin.version}"
