"""The disk space of real environments, made by uv from wheels of a few bytes, and what is removed from it."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from repros.engine.environments.disk import Kind, clean, measure_disk
from repros.engine.environments.store import ensure, environment_folder, environments_root, ready, used_file
from repros.engine.environments.use import hold
from repros.engine.environments.uv_cache import cached_wheels, uv_cache_folder
from repros.model.cache import cache_folder
from repros.model.stack import Stack
from tests.tiny_stack import MakeStack, write_wheel

pytestmark = pytest.mark.slow

TODAY = dt.datetime.now().astimezone().date()
KILLED = """
import datetime, os, pathlib, signal
from repros.engine.environments.store import ensure
from repros.model.stack import Size, Stack
size, lock = Size(1, 1), pathlib.Path({lock!r})
stack = Stack("tiny", "", {python!r}, (), datetime.date(2026, 1, 1), lock, size, size)
ensure(stack, lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def used_days_ago(stack: Stack, days: int) -> None:
    then = (dt.datetime.now().astimezone() - dt.timedelta(days)).timestamp()
    root = environment_folder(stack)
    for file in (used_file(root), root):
        os.utime(file, (then, then))


def in_uvs_cache(folder: Path) -> set[str]:
    return {wheel.distribution for wheel in cached_wheels(uv_cache_folder(folder))}


def test_a_file_with_several_names_counts_once(make_stack: MakeStack, tmp_path: Path) -> None:
    write_wheel(tmp_path, "big", source=f"text = {'x' * 500_000!r}\n")
    lock = f"--find-links {tmp_path}\nbig==1.0\n"
    for name in ("tiny_one", "tiny_two"):
        ensure(make_stack(name, lock=lock), lambda _: None)
    archives = [wheel.archive for wheel in cached_wheels(uv_cache_folder(tmp_path))]
    counted = subprocess.run(
        ["du", "-s", "-c", "-B1", *environments_root().glob("tiny-*[!a-z]"), *archives],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[-2]
    usage = measure_disk()
    others = sum(part.size for part in usage.parts if part.kind not in {Kind.ENVIRONMENT, Kind.WHEELS})
    assert usage.total - others == int(counted)
    one, two = (part for part in usage.parts if part.kind is Kind.ENVIRONMENT)
    assert one.size - one.own > 500_000
    assert usage.total < one.size + two.size


def test_what_was_not_used_for_a_time_goes_with_its_wheels(make_stack: MakeStack, tmp_path: Path) -> None:
    write_wheel(tmp_path, "tiny_one", version="2.0")
    old = make_stack("tiny_one", "tiny_two")
    ensure(old, lambda _: None)
    used_days_ago(old, 31)
    new = make_stack("tiny_two", lock="tiny_one==2.0\n")
    new_python = ensure(new, lambda _: None)
    assert in_uvs_cache(tmp_path) == {"tiny_one-1.0", "tiny_one-2.0", "tiny_two-1.0"}
    old = make_stack("tiny_one", "tiny_two")
    root = environment_folder(old)
    assert list(clean(32, TODAY)) == []
    (removed,) = clean(31, TODAY)
    assert (removed.path, removed.last_used) == (root, TODAY - dt.timedelta(31))
    assert not root.exists()
    assert new_python.exists()
    assert in_uvs_cache(tmp_path) == {"tiny_one-2.0", "tiny_two-1.0"}
    assert ensure(old, lambda _: None).exists(), "uv takes the wheel anew"
    assert in_uvs_cache(tmp_path) == {"tiny_one-1.0", "tiny_one-2.0", "tiny_two-1.0"}


def test_each_use_counts(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    ensure(stack, lambda _: None)
    used_days_ago(stack, 100)
    ensure(stack, lambda _: None)
    assert list(clean(1, TODAY)) == []
    assert ready(stack)


def test_an_environment_in_use_stays(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    ensure(stack, lambda _: None)
    with hold([stack]):
        assert list(clean(0, TODAY)) == []
    assert ready(stack)
    assert len(list(clean(0, TODAY))) == 1
    assert not ready(stack)


def test_an_accelerator_goes_that_nothing_has_read(make_stack: MakeStack) -> None:
    make_stack()
    then = (dt.datetime.now().astimezone() - dt.timedelta(40)).timestamp()
    for name in ("torch-1.0-read", "torch-1.0-unread"):
        file = cache_folder() / "sim" / name / "simulated.so"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 10_000)
        os.utime(file, (then, then))
        os.utime(file.parent, (then, then))
    os.utime(cache_folder() / "sim" / "torch-1.0-read" / "simulated.so", (time.time(), then))
    assert [part.path.name for part in clean(30, TODAY)] == ["torch-1.0-unread"]
    assert [folder.name for folder in (cache_folder() / "sim").iterdir()] == ["torch-1.0-read"]


def test_what_a_killed_process_left_goes(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack("tiny_one")
    script = KILLED.format(lock=str(stack.lock), python=stack.python)
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    killed = subprocess.run([sys.executable, "-c", script], env=environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    root = environment_folder(stack)
    assert root.exists()
    half = uv_cache_folder(tmp_path) / ".tmpAbCdEf"  # as a killed uv leaves half a wheel
    half.mkdir()
    with (half.parent / ".lock").open("rb") as running:
        fcntl.flock(running, fcntl.LOCK_SH)  # as uv does
        assert list(clean(1, TODAY)) == []
        assert not root.exists()
        assert half.exists()
    assert list(clean(1, TODAY)) == []
    assert not half.exists()


def test_making_an_environment_removes_what_a_killed_process_left_of_another(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    left = environments_root() / "other-0123456789ab"
    (left / "lib").mkdir(parents=True)
    ensure(stack, lambda _: None)
    assert not left.exists()


def test_on_another_disk_than_uvs_cache_environments_share_files(
    make_stack: MakeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Path("/dev/shm")  # noqa: S108 - a folder with a random name in it
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system in memory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setenv("REPROS_CACHE_DIR", folder)
        monkeypatch.delenv("UV_CACHE_DIR")
        first = ensure(make_stack("tiny_one"), lambda _: None)
        stack = make_stack("tiny_one", "tiny_two")
        second = ensure(stack, lambda _: None)
        module = f"lib/python{stack.python}/site-packages/tiny_one.py"
        assert (first.parents[1] / module).samefile(second.parents[1] / module)
        assert uv_cache_folder(tmp_path) == Path(folder) / "uv"
