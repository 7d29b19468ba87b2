"""Copies of real environments, made by uv from wheels of a few bytes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from repros.engine.environments.copies import copy
from repros.engine.environments.store import EnvironmentFailedError, drop, ensure, environment_folder, ready
from repros.engine.environments.uv import run_uv
from tests.tiny_stack import MakeStack, write_wheel

pytestmark = pytest.mark.slow


def printed(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def copies(environment: Path) -> list[str]:
    """Return the numbers of the copies that there are."""
    found = environment.parent.glob(f"{environment.name}-copy*")
    return sorted(root.name.removeprefix(f"{environment.name}-copy") for root in found if root.is_dir())


def test_a_change_of_a_copy_leaves_the_stacks_own_environment_as_it_is(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack("tiny_one", "tiny_two")
    own = ensure(stack, lambda _: None)
    before = {file: file.read_bytes() for file in sorted(environment_folder(stack).rglob("*")) if file.is_file()}
    write_wheel(tmp_path, "tiny_one", "NEW = True\n", "2.0")
    with copy(stack, lambda _: None) as python:
        assert python != own
        assert printed(python, "import tiny_one, tiny_two; print(tiny_one.__file__)").startswith(str(python.parents[1]))
        links = ("--find-links", tmp_path, "--no-index")
        run_uv("pip", "install", "--compile-bytecode", "--python", python, *links, "tiny_one==2.0", folder=tmp_path)
        run_uv("pip", "uninstall", "--python", python, "tiny_two", folder=tmp_path)
        assert printed(python, "import tiny_one; print(tiny_one.NEW)") == "True"
    assert copies(environment_folder(stack)) == []
    assert {
        file: file.read_bytes() for file in sorted(environment_folder(stack).rglob("*")) if file.is_file()
    } == before
    assert printed(own, "import tiny_one, tiny_two; print(hasattr(tiny_one, 'NEW'))") == "False"


def test_the_environment_is_made_first_and_a_copy_of_it_is_not_complete(make_stack: MakeStack) -> None:
    stack, lines = make_stack("tiny_one"), list[str]()
    with copy(stack, lines.append) as python:
        assert ready(stack)
        assert "stack tiny: " in lines[0]
        assert not (python.parents[1] / ".repros-complete").exists()
        assert not (python.parents[1] / ".lock").exists(), "uv would change one copy at a time"
        assert drop(stack)
        assert printed(python, "import tiny_one; print('still there')") == "still there"


def test_a_script_starts_the_interpreter_of_its_copy(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    own = ensure(stack, lambda _: None)
    script = own.with_name("tiny")
    script.write_text(f"#!{own}\nimport sys\nprint(sys.prefix)\n")
    script.chmod(0o755)
    with copy(stack, lambda _: None) as python:
        for environment in (python.parents[1], own.parents[1]):
            done = subprocess.run([environment / "bin" / "tiny"], check=True, capture_output=True, text=True)
            assert done.stdout.strip() == str(environment)


def test_there_are_as_many_copies_as_are_asked_for(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    ensure(stack, lambda _: None)
    with ExitStack() as all_of_them:
        threads = [threading.Thread(target=lambda: all_of_them.enter_context(copy(stack, print))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert copies(environment_folder(stack)) == ["1", "2", "3"]
    assert copies(environment_folder(stack)) == []


LEAVES_A_COPY = """\
import datetime, os, pathlib, sys, time
from repros.engine.environments.copies import copy
from repros.model.stack import Stack

stack = Stack("tiny", "", sys.argv[1], (), datetime.date(2026, 1, 1), pathlib.Path(sys.argv[2]))
with copy(stack, lambda _: None) as python:
    print(python, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_another_uses_is_not(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    environment = ensure(stack, lambda _: None).parents[1]
    words = [sys.executable, "-c", LEAVES_A_COPY, stack.python, str(stack.lock)]
    users = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        last = [Path(next(iter(user.stdout or ())).strip()).parents[1] for user in users][-1]
        assert copies(environment) == ["1", "2", "3"]
        for user in users[:2]:
            user.send_signal(signal.SIGKILL)
            user.wait()
        assert copies(environment) == ["1", "2", "3"], "a killed process removes nothing"
        another = make_stack("tiny_two")
        with copy(another, lambda _: None):
            assert copies(environment_folder(another)) == ["1"]
        assert copies(environment) == [last.name.rpartition("copy")[2]]
    finally:
        for user in users:
            user.kill()
            user.communicate()


def test_a_stack_whose_name_looks_like_a_copys_is_left_alone(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    object.__setattr__(stack, "name", "tiny-copy1")
    ensure(stack, lambda _: None)
    with copy(stack, lambda _: None):
        assert ready(stack)
    assert ready(stack)


def test_a_full_disk_is_one_sentence(make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = make_stack("tiny_one")
    ensure(stack, lambda _: None)

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repros.engine.environments.copies.os.link", no_space)
    monkeypatch.setattr("repros.engine.environments.copies.shutil.copy2", no_space)
    with pytest.raises(EnvironmentFailedError) as failed, copy(stack, lambda _: None):
        pass
    for part in ("stack tiny", "No space left on device", str(environment_folder(stack))):
        assert part in str(failed.value)
    assert "\n" not in str(failed.value)
    assert copies(environment_folder(stack)) == []
