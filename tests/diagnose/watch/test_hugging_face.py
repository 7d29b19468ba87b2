"""Programs with transformers under the watch: each failure is named, and what is nearly the same is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.diagnose.watch.watched import watch, watch_by_command

pytestmark = pytest.mark.slow

NAMED = {
    *("end_of_text_not_learned", "given_labels_replaced", "labels_all_masked"),
    *("second_bos", "assistant_mask_empty", "padding_counts_as_positions"),
    *("warmup_ignored", "worst_counts_as_best", "evaluation_without_labels", "generation_cut_short"),
    *("new_rate_ignored", "patience_counted_anew", "labels_shifted_twice", "attention_mask_inverted"),
}
SINCE = {"assistant_mask_empty": "4.43"}
"""Checks of what older releases do not have."""


@pytest.fixture
def release(current_python: Path) -> tuple[int, ...]:
    """The release of transformers in the interpreter of the tests."""
    code = "from importlib.metadata import version; print(version('transformers'))"
    done = subprocess.run([current_python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no transformers in this interpreter")
    return tuple(int(part) for part in done.stdout.split(".")[:2])


def test_each_failure_is_named(current_python: Path, release: tuple[int, ...], tmp_path: Path) -> None:
    """The program imports the libraries after the watch has its hooks, as a user's does."""
    lacking = {name for name, since in SINCE.items() if release < tuple(map(int, since.split(".")))}
    found = watch_by_command(current_python, tmp_path, "hugging_face.py", "failing")
    assert sorted(found) == sorted(NAMED - lacking)


@pytest.mark.usefixtures("release")
def test_what_is_nearly_the_same_is_not(library_python: Path, tmp_path: Path) -> None:
    assert watch(library_python, tmp_path, "hugging_face.py", "healthy") == []
