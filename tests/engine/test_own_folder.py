"""The folder that runs write to: hidden from git, and nothing in it is deleted that is not a run's."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from repros.engine.own_folder import LOG_FOLDERS, make_folder, new_log_folder
from repros.engine.record import begin_results


def test_logs_of_the_latest_runs_are_kept(tmp_path: Path) -> None:
    folders = [new_log_folder(tmp_path / "results.jsonl") for _ in range(LOG_FOLDERS + 5)]
    for folder in folders:
        assert folder.parent == tmp_path / ".repros/runs"
    assert sorted(folders[0].parent.iterdir()) == folders[5:]


def test_the_run_that_begins_keeps_its_own_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(LOG_FOLDERS):
        new_log_folder(tmp_path / "results.jsonl")
    monkeypatch.setenv("TZ", "Pacific/Midway")  # half a day back, as the names show it
    time.tzset()
    try:
        new = new_log_folder(tmp_path / "results.jsonl")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert min(new.parent.iterdir()) == new
    assert len([*new.parent.iterdir()]) == LOG_FOLDERS


def test_what_no_run_has_made_stays(tmp_path: Path) -> None:
    runs = tmp_path / ".repros/runs"
    theirs = [tmp_path / "runs" / f"experiment-{number}" for number in range(60)]  # as TensorBoard names the folder
    theirs += [tmp_path / "runs" / f"20260101-000000-{number:06}" for number in range(60)]
    theirs += [runs / f"20260101-000000-{number:06}" for number in range(60)]  # a run's name, without its mark
    for folder in theirs:
        folder.mkdir(parents=True)
        (folder / "events").write_text("theirs")
    marked = runs / "best"
    marked.mkdir()
    (marked / ".made-by-repros").touch()
    elsewhere = new_log_folder(tmp_path / "elsewhere/results.jsonl")
    link = runs / elsewhere.name
    link.symlink_to(elsewhere)
    file = runs / "20260101-000000-999999"
    file.write_text("theirs")
    for _ in range(LOG_FOLDERS + 5):
        new_log_folder(tmp_path / "results.jsonl")
    assert [folder for folder in theirs if not (folder / "events").is_file()] == []
    assert (marked.is_dir(), link.is_symlink(), elsewhere.is_dir(), file.is_file()) == (True,) * 4
    assert len([*runs.iterdir()]) == 60 + 3 + LOG_FOLDERS


@pytest.mark.parametrize("out", [".repros/latest.jsonl", ".repros/bisect/torch.jsonl", "results.jsonl"])
def test_git_lists_nothing_of_it(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "init", "--quiet"], env=environ, check=True)
    begin_results(Path(out), append=True).close()
    new_log_folder(Path(out))
    listed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], env=environ, check=True, capture_output=True
    ).stdout.decode()
    assert listed == ("" if out.startswith(".repros") else f"?? {out}\n")


def test_a_users_own_choice_stays(tmp_path: Path) -> None:
    make_folder(tmp_path / ".repros/bisect")
    ignored = tmp_path / ".repros/.gitignore"
    assert ignored.read_text() == "*\n"
    ignored.unlink()  # they want to keep their results in git
    make_folder(tmp_path / ".repros")
    assert not ignored.exists()
    make_folder(tmp_path / "other")
    assert not (tmp_path / "other/.gitignore").exists()


def test_without_room_there_is_no_folder_and_no_error(tmp_path: Path) -> None:
    (tmp_path / ".repros").write_text("a file")
    assert not new_log_folder(tmp_path / "results.jsonl").exists()


def test_what_a_script_has_left_in_an_earlier_run_is_deleted_however_deep(tmp_path: Path) -> None:
    first = new_log_folder(tmp_path / "results.jsonl")
    here = os.open(first, os.O_RDONLY)
    for _ in range(2_000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    for _ in range(LOG_FOLDERS):
        new_log_folder(tmp_path / "results.jsonl")
    assert not first.exists()
