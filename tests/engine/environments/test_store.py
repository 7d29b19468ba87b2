"""Real environments, made by uv from wheels of a few bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.environments.store import EnvironmentFailedError, drop, ensure, environment_folder, ready
from repros.engine.environments.uv import UvError
from repros.model.cache import cache_folder
from tests.tiny_stack import MakeStack

pytestmark = pytest.mark.slow


def installed(python: Path, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True).returncode == 0


def test_an_environment_is_made_once_and_then_reused(make_stack: MakeStack) -> None:
    stack, lines = make_stack("tiny_one"), list[str]()
    assert not ready(stack)
    python = ensure(stack, lines.append)
    assert ready(stack)
    assert python == environment_folder(stack) / "bin" / "python"
    assert installed(python, "tiny_one")
    assert "stack tiny" in lines[0]
    lines.clear()
    assert ensure(stack, lines.append) == python
    assert lines == []


def test_the_size_of_a_download_is_announced_and_how_to_make_it_smaller(
    make_stack: MakeStack, sentences: SnapshotAssertion
) -> None:
    stack, lines = make_stack("tiny_one", "nvidia_tiny"), list[str]()
    ensure(stack, lines.append)
    assert lines[:2] == sentences


def test_cached_wheels_are_not_announced_as_a_download(make_stack: MakeStack, sentences: SnapshotAssertion) -> None:
    ensure(make_stack("tiny_one", "tiny_two"), lambda _: None)
    lines = list[str]()
    ensure(make_stack("tiny_one"), lines.append)
    assert lines[0] == sentences


def test_another_lock_gives_another_environment(make_stack: MakeStack) -> None:
    one = environment_folder(make_stack("tiny_one"))
    two = environment_folder(make_stack("tiny_one", "tiny_two"))
    assert one != two
    assert one.parent == two.parent == cache_folder() / "environments"
    assert one.name.startswith("tiny-")
    assert len(one.name) == len("tiny-") + 12


def test_an_incomplete_environment_is_made_anew(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    left_behind = environment_folder(stack) / "lib" / "half_a_module.py"
    left_behind.parent.mkdir(parents=True)
    left_behind.touch()
    assert installed(ensure(stack, lambda _: None), "tiny_one")
    assert not left_behind.exists()


def test_an_environment_without_its_interpreter_is_made_anew(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    python = ensure(stack, lambda _: None)
    python.unlink()
    assert not ready(stack)
    assert installed(ensure(stack, lambda _: None), "tiny_one")


@pytest.mark.parametrize("damage", ["cut", "empty", "gone"])
def test_a_damaged_environment_is_named_with_the_way_out(damage: str, make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one", "tiny_two")
    root = ensure(stack, lambda _: None).parents[1]
    (metadata,) = root.glob("lib/python*/site-packages/tiny_two-1.0.dist-info/METADATA")
    text = metadata.read_bytes()
    metadata.unlink()  # not in uv's cache, whose file this is
    if damage != "gone":
        metadata.write_bytes(text[: len(text) // 2] if damage == "cut" else b"")
    with pytest.raises(EnvironmentFailedError) as raised:
        ensure(stack, lambda _: None)
    sizes = () if damage == "gone" else (str(metadata.stat().st_size), str(len(text)))
    for part in ("stack tiny", str(metadata), *sizes, "'uv cache clean'", f"'rm -r {root}'"):
        assert part in str(raised.value)
    drop(stack)
    assert installed(ensure(stack, lambda _: None), "tiny_two")


def test_a_dropped_environment_is_gone_and_can_be_made_again(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    assert not drop(stack)
    ensure(stack, lambda _: None)
    assert drop(stack)
    assert not environment_folder(stack).exists()
    assert installed(ensure(stack, lambda _: None), "tiny_one")


def test_an_interrupt_leaves_nothing_behind(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(stack, interrupt)
    assert not environment_folder(stack).exists()


def test_a_failed_resolution_is_one_sentence_with_uvs_explanation(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one", lock="tiny_two==3.0\n")
    with pytest.raises(EnvironmentFailedError) as failed:
        ensure(stack, lambda _: None)
    sentence = str(failed.value)
    for part in ("stack tiny", "uv pip install: No solution found", "tiny-two"):
        assert part in sentence
    assert "\n" not in sentence
    assert not environment_folder(stack).exists()


def test_an_unknown_python_version_is_refused(make_stack: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    stack = make_stack("tiny_one")
    object.__setattr__(stack, "python", "3.99")
    with pytest.raises(EnvironmentFailedError, match=r"uv venv: .*3\.99"):
        ensure(stack, lambda _: None)


def test_a_full_disk_is_refused_before_the_download(make_stack: MakeStack, tmp_path: Path) -> None:
    stack, lines = make_stack("tiny_one", unpacked=10**18), list[str]()
    with pytest.raises(EnvironmentFailedError) as failed:
        ensure(stack, lines.append)
    for part in ("stack tiny", "1000000000.0 GB", f"{tmp_path / 'uv'}"):
        assert part in str(failed.value)
    assert len(lines) == 1
    assert not environment_folder(stack).exists()


def test_two_processes_make_one_environment(make_stack: MakeStack) -> None:
    stack = make_stack("tiny_one")
    script = (
        "import datetime, pathlib\n"
        "from repros.model.stack import Size, Stack\n"
        "from repros.engine.environments.store import ensure\n"
        f"size = Size(1, 1)\nlock = pathlib.Path({str(stack.lock)!r})\n"
        f"stack = Stack('tiny', '', {stack.python!r}, (), datetime.date(2026, 1, 1), lock, size, size)\n"
        "print(ensure(stack, print))\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    processes = [
        subprocess.Popen([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum("stack tiny: " in output for output in outputs) == 1, "one of them makes it"
    assert [output.splitlines()[-1] for output in outputs] == [str(environment_folder(stack) / "bin" / "python")] * 2
    assert installed(environment_folder(stack) / "bin" / "python", "tiny_one")


def test_a_comment_in_the_lock_does_not_change_the_folder(make_stack: MakeStack) -> None:
    assert environment_folder(make_stack("tiny_one")) == environment_folder(
        make_stack("tiny_one", lock="# a comment\n")
    )
    assert environment_folder(make_stack("tiny_one")) != environment_folder(
        make_stack("tiny_one", lock="tiny_two==3.0\n")
    )


def test_only_a_file_with_the_hash_in_the_lock_is_installed(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = make_stack("tiny_one", "tiny_two")
    unhashed, lines = environment_folder(stack), stack.lock.read_text(encoding="utf-8")
    digest = hashlib.sha256((tmp_path / "tiny_one-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    hashed = lines.replace("tiny_one==1.0", f"tiny_one==1.0 --hash=sha256:{'0' * 64}  # via tiny_two")
    stack.lock.write_text(hashed, encoding="utf-8")
    assert environment_folder(stack) == unhashed, "an environment that is there already stays in use"
    with pytest.raises(EnvironmentFailedError, match=r"Hash mismatch for `tiny-one==1\.0`"):
        ensure(stack, lambda _: None)
    assert not unhashed.exists()
    stack.lock.write_text(hashed.replace("0" * 64, digest), encoding="utf-8")
    assert installed(ensure(stack, lambda _: None), "tiny_one")


def test_a_build_that_fails_is_named_with_its_last_line_alone() -> None:
    lines = [
        "  \u00d7 Failed to build `mine==1.0`",
        "  \u251c\u2500\u25b6 The build backend returned an error",
        "  \u2570\u2500\u25b6 Call to `setuptools.build_meta` failed (exit status: 1)",
        "",
        "      [stderr]",
        "      Traceback (most recent call last):",
        '        File "<string>", line 36, in <module>',
        "      ModuleNotFoundError: No module named 'pkg_resources'",
        "",
        "      hint: This error likely indicates that `mine@1.0` depends on `pkg_resources`.",
    ]
    assert str(UvError("pip install", lines)) == (
        "uv pip install: Failed to build `mine==1.0` The build backend returned an error Call to "
        "`setuptools.build_meta` failed (exit status: 1) ModuleNotFoundError: No module named 'pkg_resources'"
    )
