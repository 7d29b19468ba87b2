"""Removal of folders that scripts have made hard to remove."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.engine.launch.reaper import Reaper
from repros.engine.launch.removal import remove_tree
from tests.engine.launch.test_reaper import hang_up


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with folders in it that are nested more deeply than Python's stack, which pytest cannot remove."""
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    yield top
    subprocess.run(["rm", "-rf", top], check=True)


def test_a_folder_deeper_than_python_s_stack_is_removed(deep: Path) -> None:
    remove_tree(deep)
    assert not deep.exists()


def test_the_reaper_removes_that_of_a_killed_runner(deep: Path) -> None:
    reaper = Reaper()
    reaper.add_run(deep)
    hang_up(reaper)
    assert not deep.exists()


def test_a_folder_without_permissions_is_removed_and_no_link_followed(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir(0o500)
    (top := tmp_path / "top" / "closed").mkdir(parents=True)
    (top / "file").touch()
    (top / "link").symlink_to(kept)
    top.chmod(0)
    remove_tree(top.parent)
    assert not top.parent.exists()
    assert kept.stat().st_mode & 0o777 == 0o500
