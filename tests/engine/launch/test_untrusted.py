"""Files that a script has replaced by links, pipes and devices, and that nothing opens such files in another way."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import repros
from repros.engine.launch import logs, untrusted
from repros.engine.launch.gather import Timeline, gather

PACKAGE = Path(repros.__file__).parent
PATH = Path("processes", "7", "events.jsonl")


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """End a test that waits for a writer: nothing here may block."""
    signal.alarm(20)
    yield
    signal.alarm(0)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A file of the user's."""
    file = tmp_path / "theirs" / "events.jsonl"
    file.parent.mkdir()
    file.write_bytes(b"dear diary\n" * 300_000)
    return file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with an empty file."""
    file = tmp_path / "run" / PATH
    file.parent.mkdir(parents=True)
    file.touch()
    return tmp_path / "run"


def replace_file(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    (run / PATH).symlink_to(theirs)


def replace_by_hard_link(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    (run / PATH).hardlink_to(theirs)


def replace_folder(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    (run / PATH.parent).rmdir()
    (run / PATH.parent).symlink_to(theirs.parent)


def replace_folders(run: Path, theirs: Path) -> None:
    (run / "processes").rename(run / "before")
    (theirs.parent / "7").mkdir()
    theirs.rename(theirs.parent / "7" / PATH.name)
    (run / "processes").symlink_to(theirs.parent)


def replace_by_fifo(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    os.mkfifo(run / PATH)


def replace_by_device(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    (run / PATH).symlink_to("/dev/zero")


def replace_by_folder(run: Path, theirs: Path) -> None:
    (run / PATH).unlink()
    (run / PATH).mkdir()


Replacement = Callable[[Path, Path], None]
REPLACEMENTS: list[Replacement] = [
    replace_file,
    replace_by_hard_link,
    replace_folder,
    replace_folders,
    replace_by_fifo,
    replace_by_device,
    replace_by_folder,
]


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_what_is_no_file_of_the_run_is_not_opened(replacement: Replacement, run: Path, theirs: Path) -> None:
    assert untrusted.read(run, run / PATH, 100) == b""
    replacement(run, theirs)
    for writable in (False, True):
        with pytest.raises(OSError, match=r"link|regular|directory"):
            untrusted.open_file(run, run / PATH, writable=writable)
    with pytest.raises(OSError, match=r"exists|link"):
        untrusted.create_file(run, run / PATH)
    assert untrusted.size(run, run / PATH) == 0
    assert not untrusted.is_file(run, run / PATH)


def test_a_linked_folder_shows_no_names(run: Path, theirs: Path) -> None:
    assert untrusted.names(run, run / PATH.parent) == [PATH.name]
    replace_folders(run, theirs)
    assert untrusted.names(run, run / "processes") == untrusted.names(run, run / PATH.parent) == []
    assert not untrusted.is_folder(run, run / "processes")


def test_reads_are_bounded(run: Path) -> None:
    (run / PATH).write_bytes(b"0123456789")
    assert untrusted.read(run, run / PATH, 3, 2) == b"234"
    assert untrusted.read_ends(run, run / PATH, 3) == (b"012", b"789", 4)
    assert untrusted.read_ends(run, run / PATH, 6) == (b"012345", b"6789", 0)


@pytest.mark.parametrize("name", ["main.log", "processes/7/log.txt"])
def test_a_log_that_is_a_link_is_neither_cut_nor_read(name: str, run: Path, theirs: Path) -> None:
    before = theirs.read_bytes()
    (run / name).symlink_to(theirs)
    logs.trim(run)
    logs.compact(run)
    assert theirs.read_bytes() == before
    assert logs.tail(run, run / name) == []
    assert list(logs.read(run, [run / name])) == []


def test_logs_that_are_too_long_are_read_in_part(run: Path) -> None:
    with (run / "main.log").open("wb") as file:
        file.write(b"head")
        file.truncate(2**32)  # a hole
        file.seek(0, os.SEEK_END)
        file.write(b"tail")
    (found,) = logs.read(run, [run / "main.log"])
    assert (found[:4], found[-4:]) == (b"head", b"tail")
    assert len(found) < 2 * logs.CAP + 100
    assert b"bytes left out ...]\n" in found


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_the_records_of_such_a_process_are_skipped_and_named(replacement: Replacement, run: Path, theirs: Path) -> None:
    replacement(run, theirs)
    gathered = gather(run, Timeline(started=0.0), 8, 0)
    assert gathered.processes == ()
    assert replacement is replace_folders or [name.partition(" (")[0] for name in gathered.damaged] == [str(PATH)]


OPENING = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "unlink"),
    *("glob", "rglob", "iterdir", "listdir", "scandir", "walk"),
}
ALLOWED = {
    ("engine/launch/untrusted.py", "*"): "this is the module",
    ("engine/launch/containment.py", "_pids_in_namespaces"): "/proc",
    ("engine/launch/deadlock.py", "_usages"): "/proc",
    ("engine/launch/deadlock.py", "_runnable"): "/proc",
    ("engine/launch/ports.py", "_kernel_range"): "/proc",
    ("engine/launch/reaper.py", "members"): "/proc",
    ("engine/launch/reaper.py", "_read"): "/proc",
    ("engine/launch/server.py", "__init__"): "the log of a server, in a folder of the runner's",
    ("scripts/try_/bubblewrap.py", "build_command"): "the names of devices",
    ("scripts/try_/cgroup.py", "_make"): "a file of the kernel's",
    ("scripts/try_/cgroup.py", "_parents"): "/proc",
    ("scripts/try_/cgroup.py", "_remove_left"): "the names of cgroups",
    ("scripts/try_/paths.py", "_only_for_root"): "the names of the system's settings",
    ("scripts/try_/command.py", "digest"): "the user's files, before a run",
    ("scripts/try_/command.py", "_walk"): "the user's files, before a run",
    ("scripts/try_/links.py", "find_left_out"): "the user's files, before a run",
    ("scripts/try_/links.py", "find_files"): "the user's files, before a run",
    ("scripts/try_/needs.py", "_top_levels"): "the files of an environment, which no script may change",
    ("scripts/try_/orphans.py", "_all_processes"): "/proc",
    ("scripts/try_/script.py", "digest"): "the user's files, before a run",
    ("scripts/try_/script.py", "copy_to"): "writes the script into a new folder, before a run",
    ("scripts/try_/script.py", "_find_local"): "the user's files, before a run",
    ("scripts/try_/script.py", "_read"): "the user's files, before a run",
}
"""The functions that open other files, and which. The folders `inside` run in the sandbox themselves."""


def test_no_other_module_opens_files_of_a_run() -> None:
    found = set()
    for folder in ("engine/launch", "scripts/try_"):
        for file in (PACKAGE / folder).glob("*.py"):
            for function, name in opening_calls(ast.parse(file.read_text("utf-8"))):
                found.add((str(file.relative_to(PACKAGE)), function, name))
    whole = {file for file, function in ALLOWED if function == "*"}
    others = {(file, function) for file, function, _ in found if file not in whole}
    assert others == {place for place in ALLOWED if place[1] != "*"}


def opening_calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each call that opens, changes or lists files, with the innermost function around it."""

    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else function
            if isinstance(child, ast.Call):
                name = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
                if name in OPENING:
                    yield inner, name
            yield from visit(child, inner)

    return visit(tree, "module")


def test_the_guard_sees_an_opening_call() -> None:
    source = "def act(path):\n    with path.open() as file:\n        pass\n    return os.listdir(open(path))\n"
    assert [*opening_calls(ast.parse(source))] == [("act", "open"), ("act", "listdir"), ("act", "open")]
