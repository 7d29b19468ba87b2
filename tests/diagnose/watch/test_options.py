"""`--only`, `--skip` and `--every` inside the watched process."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.diagnose.watch import lightning_callback
from repros.diagnose.watch.inside.events import Events
from repros.diagnose.watch.inside.watch import Watch, WatchOptions
from repros.model.errors import ReprosError


def watch(folder: Path, every: int = 0, only: str = "", skip: str = "", also: str = "") -> Watch:
    made = Watch(Events(None))
    chosen = (frozenset(words.split()) for words in (only, skip, also))
    made.begin(WatchOptions(str(folder), every, *chosen))
    return made


@pytest.mark.parametrize(
    ("only", "skip", "is_enabled"),
    [
        ("", "", True),
        ("gradients_differ", "", True),
        ("gradients", "", True),
        ("gradient", "", False),
        ("eval_mode", "", False),
        ("", "gradients_differ", False),
        ("", "gradients_differ_bypassed", False),
        ("", "gradients_differ_static_graph", True),
        ("gradients", "gradients_differ_bypassed", False),
    ],
)
def test_the_first_words_of_a_name_choose_a_check(only: str, skip: str, *, is_enabled: bool, tmp_path: Path) -> None:
    assert watch(tmp_path, only=only, skip=skip).is_enabled("gradients_differ_bypassed") == is_enabled


@pytest.mark.parametrize(
    ("only", "skip", "also", "requested", "is_enabled"),
    [
        ("", "", "", False, True),
        ("", "", "nan", True, True),
        ("nan", "", "", True, True),
        ("nan_output", "", "", True, True),
        ("eval_mode", "", "", False, False),
        ("eval_mode", "", "nan", True, True),
        ("", "nan_output", "nan", True, False),
    ],
)
def test_some_checks_are_requested_for(
    only: str, skip: str, also: str, *, requested: bool, is_enabled: bool, tmp_path: Path
) -> None:
    one = watch(tmp_path, only=only, skip=skip, also=also)
    assert (one.is_requested("nan"), one.is_enabled("nan_output")) == (requested, is_enabled)


def test_every_adds_steps_to_those_that_double(tmp_path: Path) -> None:
    steps = range(1, 21)
    assert [step for step in steps if watch(tmp_path).is_due(step)] == [1, 2, 4, 8, 16]
    assert [step for step in steps if watch(tmp_path, every=6).is_due(step)] == [1, 2, 4, 6, 8, 12, 16, 18]


def test_a_watch_that_has_ended_hears_and_writes_nothing(tmp_path: Path) -> None:
    heard: list[int] = []
    one = watch(tmp_path)
    one.listen("step", heard.append)
    one.notify("step", 1)
    one.report("eval_mode", "found")
    one.end()
    one.notify("step", 2)
    one.report("eval_mode", "found again", once=(2,))
    assert heard == [1]
    (file,) = tmp_path.iterdir()
    assert file.read_text("utf-8").count("eval_mode") == 1


def test_a_callback_needs_lightning() -> None:
    with pytest.raises(ReprosError, match="import lightning"):
        lightning_callback()
