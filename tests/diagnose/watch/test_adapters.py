"""Programs with PEFT under the watch: each failure is named, and what is nearly the same is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.diagnose.watch.watched import watch

pytestmark = pytest.mark.slow

NAMED = {
    *("adapter_frozen", "adapter_frozen_by_preparation", "adapter_checkpointed", "adapter_bypassed"),
    "adapter_not_in_optimizer",
    *("adapter_not_loaded", "adapter_replaced", "adapter_saved_empty", "adapter_switched"),
    *("merge_changes_shared_weight", "new_tokens_frozen", "head_not_saved"),
}
UNTIL = {"adapter_switched": "0.21"}
"""Checks of what newer releases no longer do."""


@pytest.fixture
def release(current_python: Path) -> tuple[int, ...]:
    """The release of PEFT in the interpreter of the tests."""
    code = "from importlib.metadata import version; print(version('peft'))"
    done = subprocess.run([current_python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no PEFT in this interpreter")
    return tuple(int(part) for part in done.stdout.split(".")[:2])


def test_each_failure_is_named(warm_python: Path, release: tuple[int, ...], tmp_path: Path) -> None:
    gone = {name for name, until in UNTIL.items() if release >= tuple(map(int, until.split(".")))}
    found = watch(warm_python, tmp_path, "adapters.py", "failing")
    assert sorted(found) == sorted(NAMED - gone)


@pytest.mark.usefixtures("release")
def test_what_is_nearly_the_same_is_not(warm_python: Path, tmp_path: Path) -> None:
    assert watch(warm_python, tmp_path, "adapters.py", "healthy") == []
