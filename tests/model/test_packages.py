from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name

from repros.model.packages import RELEASED_TOGETHER, SAME_CODE, distributions_of, package_of


@pytest.mark.parametrize(
    ("distribution", "package"),
    [
        ("torch", "torch"),
        ("pytorch", "torch"),
        ("PyTorch", "torch"),
        ("lightning", "lightning"),
        ("pytorch_lightning", "lightning"),
        ("Lightning.Fabric", "lightning"),
        ("accelerate", "accelerate"),
        ("Huggingface_Hub", "huggingface-hub"),
    ],
)
def test_a_distribution_contains_a_package(distribution: str, package: str) -> None:
    assert package_of(distribution) == package


@pytest.mark.parametrize(
    ("package", "distributions"),
    [
        ("torch", ("torch", "pytorch")),
        ("Lightning", ("lightning", "pytorch-lightning", "lightning-fabric")),
        ("pytorch-lightning", ("pytorch-lightning",)),
        ("Huggingface_Hub", ("huggingface-hub",)),
    ],
)
def test_a_package_has_these_distributions_with_its_own_name_first(
    package: str, distributions: tuple[str, ...]
) -> None:
    assert distributions_of(package) == distributions


@pytest.mark.parametrize("package", SAME_CODE)
def test_every_distribution_of_a_package_contains_it(package: str) -> None:
    assert {package_of(name) for name in distributions_of(package)} == {package}


def test_the_names_in_the_tables_are_canonical() -> None:
    names = [
        name for table in (SAME_CODE, RELEASED_TOGETHER) for key, others in table.items() for name in (key, *others)
    ]
    assert names == [canonicalize_name(name) for name in names]
