"""Snapshots: read once, and again after any change; without harm where they are damaged or cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from repros.cli.shared import inputs
from repros.engine.digest.sources import PythonSources
from repros.model import cache, settings
from repros.model.cache import snapshot
from repros.model.cache.snapshot import files_below, remember
from repros.model.settings import CATALOGUE
from tests.package_catalogue import load

PACKAGE = CATALOGUE.parent


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a cache folder of the test's own; return the folder of its snapshots."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "snapshots"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "one.txt").write_text("1")
    (folder / "two.txt").write_text("2")
    return folder


@pytest.fixture
def ask(data: Path) -> Callable[[], tuple[str, int]]:
    """Return a function that gives the files' text, and how often it was read so far."""
    count = 0

    def read() -> str:
        nonlocal count
        count += 1
        return "".join(file.read_text() for file in sorted(data.glob("*.txt")))

    return lambda: (remember("text", files_below(data, ".txt"), read), count)


def test_what_has_not_changed_is_read_once(kept: Path, ask: Callable[[], tuple[str, int]]) -> None:
    assert [ask(), ask(), ask()] == [("12", 1)] * 3
    assert len([*kept.iterdir()]) == 1


def test_any_change_is_seen(kept: Path, data: Path, ask: Callable[[], tuple[str, int]]) -> None:
    assert ask() == ("12", 1)
    (data / "one.txt").write_text("3")
    assert ask() == ("32", 2)
    times = (data / "one.txt").stat()
    (data / "one.txt").write_text("4")  # of the same length, with the old times
    os.utime(data / "one.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ask() == ("42", 3)
    (data / "six.txt").write_text("6")
    assert ask() == ("462", 4)
    (data / "one.txt").unlink()
    assert [ask(), ask()] == [("62", 5)] * 2
    assert kept.is_dir()


def test_another_python_reads_for_itself(
    kept: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], tuple[str, int]]
) -> None:
    ask()
    monkeypatch.setattr(sys, "version", "4.0")
    assert ask() == ("12", 2)
    assert kept.is_dir()


def test_a_damaged_snapshot_counts_as_none(kept: Path, ask: Callable[[], tuple[str, int]]) -> None:
    ask()
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    damaged = [b"", b"\0" * len(whole), whole[:-1], whole[: len(whole) // 2]]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for data in damaged:
        file.write_bytes(data)
        assert ask()[0] == "12"


def test_nothing_is_taken_from_another_user(
    kept: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], tuple[str, int]]
) -> None:
    ask()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert ask() == ("12", 2)
    assert kept.is_dir()


def test_without_a_cache_folder_everything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], tuple[str, int]]
) -> None:
    (tmp_path / "a file").write_text("")
    for folder in (tmp_path / "a file", "~nobody-has-this-name/cache"):
        monkeypatch.setenv(cache.VARIABLE, str(folder))
        before = ask()[1]
        assert ask() == ("12", before + 1)


def test_the_oldest_of_many_are_removed(kept: Path, tmp_path: Path) -> None:
    for number in range(snapshot._MAX_SNAPSHOTS + 3):
        file = tmp_path / str(number)
        file.write_text("")
        remember("number", [file], lambda: number)  # noqa: B023 - called at once
    assert len([*kept.iterdir()]) == snapshot._MAX_SNAPSHOTS


def test_a_full_disk_leaves_nothing(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    # A limit of 100 bytes for each file: like a full disk, it takes the first bytes and refuses the rest.
    script = f"""
import resource
from repros.model.cache.snapshot import remember
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(len(remember("text", [{str(tmp_path / "file")!r}], lambda: "x" * 1000)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1000\n", "")
    assert [*kept.iterdir()] == []


def test_files_of_somebody_else_stay(kept: Path, tmp_path: Path) -> None:
    theirs = [kept / "epoch-1.pt", kept / "catalogue-0123abcd", kept / "a folder"]
    theirs[2].mkdir(parents=True)
    for file in theirs[:2]:
        file.write_text("a model's snapshot")
    for number in range(snapshot._MAX_SNAPSHOTS + 3):
        (tmp_path / str(number)).write_text("")
        remember("number", [tmp_path / str(number)], lambda: number)  # noqa: B023 - called at once
    assert [file.exists() for file in theirs] == [True] * 3
    assert len([*kept.iterdir()]) == snapshot._MAX_SNAPSHOTS + 3


def test_what_killed_processes_left_is_removed(kept: Path, tmp_path: Path, ask: Callable[[], tuple[str, int]]) -> None:
    ask()
    (whole,) = kept.iterdir()
    for pid in range(2 * snapshot._MAX_SNAPSHOTS):
        left = kept / f"{whole.name}.{pid}"
        left.write_bytes(b"")
        os.utime(left, (0, 0))
    (tmp_path / "data/one.txt").write_text("3")
    ask()
    assert len([*kept.iterdir()]) == snapshot._MAX_SNAPSHOTS
    assert whole.exists()


def test_a_refusal_is_not_kept(kept: Path, data: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            remember("nothing", files_below(data, ".txt"), lambda: 1 / 0)
    assert not kept.exists()


def test_the_usual_folder_is_that_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for values in ({}, {"XDG_CACHE_HOME": str(tmp_path)}, {cache.VARIABLE: str(tmp_path / "own")}):
        for name in ("XDG_CACHE_HOME", cache.VARIABLE):
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        assert snapshot._folder() == cache.cache_folder() / "snapshots"


def test_a_kept_catalogue_equals_the_scripts(kept: Path) -> None:
    expected = load()
    assert inputs.read_catalogue(settings.PACKAGE) == expected
    assert [*kept.iterdir()]
    assert inputs.read_catalogue(settings.PACKAGE) == expected


def test_a_kept_catalogue_depends_on_all_code_that_reads_it() -> None:
    closure = PythonSources({"repros": PACKAGE}).closure([PACKAGE / "engine/catalogue.py"])
    outside = [file for file in closure if not any(map(file.is_relative_to, inputs.READERS))]
    assert len(closure) > 10
    # An empty `__init__` is on the way to each of them.
    assert not [file for file in outside if file.name != "__init__.py"]


def test_an_edited_script_is_listed_as_it_is(kept: Path, tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "ddp_module_call_skips_sync.py"
    script.parent.mkdir()
    text = (CATALOGUE / "ddp" / script.name).read_text()
    for title in ("One title", "Two title"):
        script.write_text(text.replace("Calling ddp.module bypasses DDP", title))
        command = [sys.executable, "-m", "repros", "list", "--catalogue", str(script.parent)]
        done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
        assert f"RPR-0017 {title}" in done.stdout
    assert kept.is_dir()
