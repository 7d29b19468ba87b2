from __future__ import annotations

from dataclasses import replace

import pytest

from repros.model import ExpectedOutcome, Role, Variant
from tests.factories import conditions, repro, requirements, variant


@pytest.mark.parametrize(
    ("made", "role"),
    [
        (variant(), Role.FAILS),
        (variant("fixed", ExpectedOutcome.PASSES), Role.WORKS),
        (variant("fixed", ExpectedOutcome.PASSES, claim="it works"), Role.WORKS),
        (variant("checked", claim="a check is enough"), Role.DOES_NOT_FIX),
        (replace(variant("alone", ExpectedOutcome.PASSES), contrast=True), Role.CONTRAST),
    ],
)
def test_the_role_of_a_variant_follows_from_outcome_and_claim(made: Variant, role: Role) -> None:
    assert made.role is role


def test_the_named_packages_are_those_of_every_key_under_canonical_names() -> None:
    made = repro(
        packages=("Lightning",),
        dependencies=requirements("torch>=2.1"),
        affected=conditions("pytorch_lightning<2.4"),
        requires=requirements("accelerate>=1"),
        variants=(
            variant(affected=conditions("Bits.And_Bytes>=0.40")),
            variant("fixed", ExpectedOutcome.PASSES, requires=requirements("transformers>=4")),
        ),
    )
    assert made.named_packages == {
        "lightning",
        "torch",
        "pytorch-lightning",
        "accelerate",
        "bits-and-bytes",
        "transformers",
    }
