"""Removal of folders that scripts have made hard to remove."""

from __future__ import annotations

import os
from pathlib import Path

from repros.engine.launch.removal import remove_tree


def test_a_folder_deeper_than_python_s_stack_is_removed(tmp_path: Path) -> None:
    (top := tmp_path / "top").mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(top)
    assert not top.exists()


def test_a_folder_without_permissions_is_removed_and_no_link_followed(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir(0o500)
    (top := tmp_path / "top" / "closed").mkdir(parents=True)
    (top / "file").touch()
    (top / "link").symlink_to(kept)
    top.chmod(0)
    remove_tree(top.parent)
    assert not top.parent.exists()
    assert kept.stat().st_mode & 0o777 == 0o500
