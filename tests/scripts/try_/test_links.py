"""Links next to a script or in a command's folder: what leads out of the folder is not copied."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from repros.cli import main
from repros.scripts.try_ import links
from repros.scripts.try_.command import read_command
from repros.scripts.try_.script import read_script
from tests.scripts.try_.conftest import Try, Write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A script with a package and modules next to it, some of which are links; and a diary outside of its folder."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/diary.txt").write_text("dear diary", "utf-8")
    (tmp_path / "private/keys.py").write_text("KEY = 1\n", "utf-8")
    folder = tmp_path / "project"
    (folder / "utils").mkdir(parents=True)
    (folder / "utils/__init__.py").write_text("from utils import same\n", "utf-8")
    (folder / "utils/real.py").write_text("VALUE = 4\n", "utf-8")
    (folder / "utils/same.py").symlink_to("real.py")
    (folder / "utils/data").symlink_to(tmp_path / "private")
    (folder / "utils/loop").symlink_to("../utils")
    (folder / "keys.py").symlink_to("../private/keys.py")
    (folder / "train.py").write_text("import keys, utils\n", "utf-8")
    return folder


def test_links_that_leave_the_folder_are_not_copied(project: Path, tmp_path: Path) -> None:
    script = read_script(project / "train.py")
    assert {path.relative_to(project).as_posix() for path in script.left_out} == {"keys.py", "utils/data"}
    (copied := tmp_path / "copied").mkdir()
    script.copy_to(copied)
    assert sorted(path.name for path in copied.iterdir()) == ["train.py", "utils"]
    assert sorted(path.name for path in (copied / "utils").iterdir()) == ["__init__.py", "loop", "real.py", "same.py"]
    assert (copied / "utils/same.py").read_text("utf-8") == "VALUE = 4\n", "a link within the folder leads to the copy"
    assert (copied / "utils/loop").is_symlink()
    assert len(script.digest()) > 0


def test_what_is_no_ordinary_file_is_not_copied(project: Path, tmp_path: Path) -> None:
    """A pipe, a socket, a file larger than a script needs, and folders deeper than any package."""
    utils = project / "utils"
    os.mkfifo(utils / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(utils / "socket"))
    with (utils / "big.bin").open("wb") as file:
        file.truncate(10**9)  # which needs no space
    (deep := utils / "/".join(["a"] * 200)).mkdir(parents=True)
    (deep / "end.py").touch()
    script = read_script(project / "train.py")
    left_out = {path.relative_to(project).as_posix()[:15] for path in script.left_out}
    assert left_out == {
        "keys.py",
        "utils/data",
        "utils/pipe.py",
        "utils/socket",
        "utils/big.bin",
        "utils/a/a/a/a/a",
    }
    (copied := tmp_path / "copied").mkdir()
    script.copy_to(copied)
    assert not [path for path in copied.rglob("*") if path.name in {"pipe.py", "socket", "big.bin", "end.py"}]
    assert (copied / "utils/real.py").exists()


def test_a_command_s_folder_likewise(project: Path, tmp_path: Path) -> None:
    command = read_command(["python", "train.py"], project)
    assert [path.as_posix() for path in command.left_out] == ["keys.py"]
    (copied := tmp_path / "copied").mkdir()
    command.copy_to(copied)
    assert not [path for path in copied.rglob("*") if "diary" in path.name or path.name == "keys.py"]


@pytest.mark.parametrize(
    ("target", "is_left"),
    [("a.txt", False), ("../b.txt", False), ("../../c.txt", True), ("/etc/hostname", True), ("gone", False)],
)
def test_a_relative_path_within_the_folder_stays(tmp_path: Path, target: str, is_left: bool) -> None:
    (tmp_path / "inside").mkdir()
    link = tmp_path / "inside/link"
    link.symlink_to(target)
    assert links.leaves(link, tmp_path) is is_left
    assert links.leaves(tmp_path / "inside", tmp_path) is False


def test_what_is_not_copied_is_named(try_here: Try, write: Write, here: Path) -> None:
    (here.parent / "elsewhere.py").write_text("KEY = 1\n", "utf-8")
    (here / "keys.py").symlink_to(here.parent / "elsewhere.py")
    write("train.py", "import keys\n")
    ended = try_here("train.py")
    assert (ended.code, "ModuleNotFoundError" in ended.out, "--with" in ended.out) == (1, True, False)
    assert "keys.py" in ended.err


def test_a_package_with_too_many_files_to_be_copied_is_refused(
    write: Write, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("train.py", "import package\n")
    (here / "package").mkdir()
    write("package/__init__.py", "")
    for number in range(links.MOST_FILES):
        (here / f"package/{number}.txt").touch()
    assert main(["try", "train.py"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "package is imported by the script, so it is copied for each run" in err
