from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from repros.model.packages import format_requirement

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
