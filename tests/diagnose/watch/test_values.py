"""What processes compare of tensors is the same in each, also where values are missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from repros.diagnose.watch.inside.checks.torch_distributed.ranks_fed_alike import _digest_of
from repros.diagnose.watch.inside.values import stable_digest


class Sample(list[float]):
    """As much of a tensor as the digest reads."""

    def tolist(self) -> list[float]:
        return [*self]


def test_a_batch_with_nan_has_one_digest() -> None:
    batches = [Sample([*map(float, range(16)), float("nan"), float("nan")]) for _ in range(2)]
    assert _digest_of((3, 6), batches[0]) == _digest_of((3, 6), batches[1]) != ""
    assert _digest_of((6, 3), batches[0]) != _digest_of((3, 6), batches[0])


def test_nan_is_one_value_of_many() -> None:
    assert _digest_of((64,), Sample(float("nan") for _ in range(64))) == ""


@pytest.mark.parametrize("value", ["text", "(1.5, float('nan'))", "[1, 2]"])
def test_a_digest_is_the_same_in_all_processes(value: str) -> None:
    program = f"from repros.diagnose.watch.inside.values import stable_digest; print(stable_digest({value!r}))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {stable_digest(value)}
