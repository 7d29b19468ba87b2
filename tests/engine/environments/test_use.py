"""Environments that a process holds are not removed by another one."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repros.engine.environments import ensure, environment_folder, ready, use
from repros.engine.environments.use import drop_unless_held, find_loss, hold
from tests.tiny_stack import MakeStack

HOLDS = """\
    import fcntl, sys
    file = open(sys.argv[1], "ab")
    fcntl.flock(file, fcntl.LOCK_SH)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_keeps_what_it_holds_until_it_ends(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_library")
    ensure(stack, print)
    command = [sys.executable, "-c", textwrap.dedent(HOLDS), f"{environment_folder(stack)}.used"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not drop_unless_held(stack)
        assert ready(stack)
        holder.kill()
    assert drop_unless_held(stack)
    assert not ready(stack)
    assert not drop_unless_held(stack)


def test_what_is_held_for_a_moment_is_removed(make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process has the locks of its parent between its fork and its own program."""
    monkeypatch.setattr(use, "_LOCK_TIMEOUT", 60.0)  # the moment may be long on a busy machine
    stack = make_stack("tiny_library")
    ensure(stack, print)
    with contextlib.ExitStack() as held, ThreadPoolExecutor() as pool:
        held.enter_context(hold([stack]))
        dropped = pool.submit(drop_unless_held, stack)
        time.sleep(0.2)
        assert not dropped.done()
        held.close()
        assert dropped.result()


def test_several_hold_one_and_the_last_lets_it_go(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_library")
    ensure(stack, print)
    with hold([stack]):
        with hold([stack]):
            assert not drop_unless_held(stack)
        assert not drop_unless_held(stack)
    assert drop_unless_held(stack)


def test_a_folder_that_cannot_be_written_is_no_error(make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_CACHE_DIR", "/proc/nowhere")
    with hold([make_stack("tiny_library")]):
        pass


def test_what_is_lost_is_named(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_library")
    python = Path(ensure(stack, print))
    assert find_loss(stack, Path(sys.executable)) is None
    assert find_loss(stack, python) is None
    (module,) = python.parents[1].glob("lib/python*/site-packages/tiny_library.py")
    module.unlink(missing_ok=True)
    lost = find_loss(stack, python)
    assert lost is not None
    assert str(module) in lost
    drop_unless_held(stack)
    assert find_loss(stack, python) == f"{environment_folder(stack)} was removed"
