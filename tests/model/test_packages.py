from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.model.packages import RELEASED_TOGETHER, SAME_CODE, distributions_of, format_requirement, package_of


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


VERSIONS = st.from_regex(r"[1-9]\.[0-9]{1,2}(\.[0-9])?", fullmatch=True)
BOUNDS = st.builds(str.__add__, st.sampled_from([">=", ">", "~=", "==", "===", "!=", "<=", "<"]), VERSIONS)
LOWER, UPPER = (">", "~"), ("<",)


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("lightning<2.4,>=2.1", "lightning>=2.1,<2.4"),
        ("lightning >=2.1, <2.4", "lightning>=2.1,<2.4"),
        ("torch<=2.9,!=2.5,>2.0", "torch>2.0,!=2.5,<=2.9"),
        ("torch<3,~=2.1", "torch~=2.1,<3"),
        ("torch==2.1.2", "torch==2.1.2"),
        ("torch", "torch"),
    ],
)
def test_the_lower_bound_comes_first(written: str, formatted: str) -> None:
    assert format_requirement(Requirement(written)) == formatted


@given(st.lists(BOUNDS, unique=True, max_size=5))
def test_the_text_is_the_same_range_with_its_bounds_in_order(bounds: list[str]) -> None:
    requirement = Requirement("torch" + ",".join(bounds))
    text = format_requirement(requirement)
    assert Requirement(text) == requirement
    signs = [bound[0] for bound in text.removeprefix("torch").split(",") if bound]
    upper = [sign in UPPER for sign in signs]
    lower = [sign in LOWER for sign in signs]
    assert upper == sorted(upper)
    assert lower == sorted(lower, reverse=True)
