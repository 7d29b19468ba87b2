"""Programs with accelerate and datasets under the watch: each failure is named, and what is nearly the same is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.diagnose.watch.watched import watch, watch_by_command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("libraries")]

NAMED = {
    "accelerated.py": {
        *("clipped_while_accumulating", "accumulated_gradients_zeroed", "state_loaded_before_prepare"),
        *("batches_skipped_again", "epoch_set_on_parent", "rows_of_older_code", "split_overlaps"),
    },
    "accelerated_ranks.py": {
        *("gathered_after_the_loop", "gathered_as_one_batch", "schedule_ahead"),
        *("share_of_share", "share_of_other_data", "split_differs", "plugin_ignored"),
    },
}
COLD = "accelerated.py"
"""A program that imports the libraries itself, after the watch has its hooks, as a user's does."""


@pytest.fixture
def libraries(current_python: Path) -> None:
    """Skip where the interpreter of the tests lacks the libraries."""
    # Without an import, which takes seconds.
    code = "from importlib.metadata import version; version('accelerate'), version('datasets')"
    if subprocess.run([current_python, "-c", code], capture_output=True, check=False).returncode:
        pytest.skip("no accelerate and datasets in this interpreter")


@pytest.mark.parametrize("script", NAMED)
def test_each_failure_is_named(script: str, current_python: Path, library_python: Path, tmp_path: Path) -> None:
    if script == COLD:
        found = watch_by_command(current_python, tmp_path, script, "failing")
    else:
        found = watch(library_python, tmp_path, script, "failing")
    assert sorted(found) == sorted(NAMED[script])


@pytest.mark.parametrize("script", NAMED)
def test_what_is_nearly_the_same_is_not(script: str, library_python: Path, tmp_path: Path) -> None:
    assert watch(library_python, tmp_path, script, "healthy") == []
