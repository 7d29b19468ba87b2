from __future__ import annotations

import pytest
from packaging.version import Version

from repros.engine.stacks import load_stacks, stack
from repros.model.errors import UnknownNameError


def test_the_stacks_are_sorted_oldest_first() -> None:
    names = list(load_stacks())
    assert names == sorted(names)
    assert (names[0], names[-1]) == ("2023-05", "current")
    assert len(names) >= 10  # newest.yml adds one now and then


def test_no_stack_has_a_newer_release_than_current() -> None:
    newest = stack("current").pins
    for known in load_stacks().values():
        for requirement in known.requirements:
            if any(part.operator == "==" for part in requirement.specifier):
                pinned = known.pins[requirement.name].version
                assert Version(pinned) <= Version(newest[requirement.name].version), (known.name, requirement)


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("2023-05", {"torch==2.0.1", "lightning==2.0.9", "accelerate==0.20.3"}),
        ("2023-12", {"torch==2.1.2", "lightning==2.1.3", "accelerate==0.25.0"}),
        ("2025-01", {"torch==2.6.0", "lightning==2.5.0.post0", "accelerate==1.3.0", "transformers==4.48.3"}),
        ("2026-07", {"torch==2.13.0", "lightning==2.6.6", "accelerate==1.15.0", "bitsandbytes==0.50.2"}),
    ],
)
def test_a_stack_has_the_versions_of_its_date(name: str, versions: set[str]) -> None:
    assert versions <= {str(requirement) for requirement in stack(name).requirements}


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'2023-1'.*'2023-12'"):
        stack("2023-1")


def test_the_cpu_build_is_smaller_than_the_cuda_build() -> None:
    for known in load_stacks().values():
        if known.cuda is None:
            assert known.name == "current"  # a workflow has locked it, which measures no size
            continue
        assert known.cuda.download < known.cuda.unpacked
        if known.cpu:
            assert known.cpu.download < known.cuda.download / 5
