"""Kept expressions and methods: those of a new compilation, whatever the file has, and compiled once."""

from __future__ import annotations

import dataclasses
import os
import pwd
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.model import cache
from repros.model.compiled import CompiledCode

EXPRESSIONS = tuple(rf"(?P<name>[a-z]{{{number}}})\d+(?:x|y)?(?P=name)|(other)\b" for number in range(1, 11))
TEXT = "ab12xab other abc7abc"
COMPILER = vars(sys.modules["re._compiler"])
OWN = {name: COMPILER[name] for name in ("compile", "_sre", "_code")}

OTHER_PYTHON = """
import importlib.util, re, runpy, sys
from types import FunctionType
# Python's own compiler under no name that a program knows.
spec = re._compiler.__spec__
compiler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compiler)
re._compile = FunctionType(re._compile.__code__, {**vars(re), "_compiler": compiler})
"""


def restore() -> None:
    """Let this process compile as Python does."""
    COMPILER.update(OWN)
    vars(dataclasses).pop("exec", None)
    re.purge()


def start() -> CompiledCode:
    """Begin as a new process of the program does."""
    restore()
    kept = CompiledCode("test")
    kept.keep_expressions()
    kept.keep_methods()
    return kept


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set a cache folder of the test's own, and restore the compiler."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    yield tmp_path / "snapshots"
    restore()


def answers() -> list[object]:
    """Return what expressions find, and what a dataclass does."""

    @dataclasses.dataclass(frozen=True, order=True)
    class Value:
        """A value."""

        number: int
        texts: list[str] = dataclasses.field(default_factory=list)

    value = Value(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.number = 2  # type: ignore[misc]
    found = [
        (expression.groups, expression.groupindex, [match.groupdict() for match in expression.finditer(TEXT)])
        for expression in map(re.compile, EXPRESSIONS)
    ]
    return [found, repr(value).rpartition(".")[2], value == Value(1, []), value < Value(2)]


def number_compiled() -> int:
    """Return how many expressions the answers compile and do not find."""
    compiled = []

    def code(parsed: object, flags: int) -> object:
        compiled.append(parsed)
        return OWN["_code"](parsed, flags)

    COMPILER["_code"] = code
    answers()
    return len(compiled)


def test_what_one_process_compiles_the_next_finds(folder: Path) -> None:
    expected = answers()
    first = start()
    assert number_compiled() == len(EXPRESSIONS)
    first.save()
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    start()
    assert number_compiled() == 0
    re.purge()
    assert answers() == expected


def test_few_results_are_not_worth_a_file(folder: Path) -> None:
    kept = start()
    re.compile("a text of the user's")
    kept.save()
    assert not folder.exists()


def test_no_file_and_no_set_is_larger_than_its_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repros.model.compiled._MOST_BYTES", 2_000)
    monkeypatch.setattr("repros.model.compiled._MOST", 20)
    kept = start()
    for number in range(100):
        re.compile(f"{number}" * 20)
    kept.save()
    assert not folder.exists()
    assert len(kept._new) + len(kept._used) <= 20


def test_a_large_file_begins_anew_with_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repros.model.compiled._FEWEST", 1)
    first = start()
    re.compile("used once")
    assert number_compiled() == len(EXPRESSIONS)
    first.save()
    monkeypatch.setattr("repros.model.compiled._MOST_BYTES", Path(first._file).stat().st_size)
    second = start()
    assert number_compiled() == 0
    re.compile("new")
    second.save()
    third = start()
    assert number_compiled() == 0
    assert third._find(("new", 0))
    assert not third._find(("used once", 0))


def test_an_expression_is_found_by_its_type_and_flags() -> None:
    start()
    for flags in (0, re.IGNORECASE):
        assert re.compile("[a-z]", flags).findall("aB") == ["a", "B"][: 2 if flags else 1]
        assert re.compile(b"[a-z]", flags).findall(b"aB") == [b"a", b"B"][: 2 if flags else 1]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@given(
    st.from_regex(r"[ab(|)*?.\\w\[\]^x{}0-9<>=!P:-]{1,30}", fullmatch=True),
    st.sampled_from([re.NOFLAG, re.IGNORECASE, re.MULTILINE | re.DOTALL, re.VERBOSE]),
)
def test_a_found_expression_equals_a_new_one(pattern: str, flags: re.RegexFlag) -> None:
    restore()
    try:
        new = re.compile(pattern, flags)
    except (re.error, OverflowError) as error:
        start()
        with pytest.raises(type(error)):
            re.compile(pattern, flags)
        return
    start()
    re.compile(pattern, flags)
    re.purge()
    COMPILER["_code"] = None  # nothing can be compiled any more
    assert re.compile(pattern, flags) == new  # in all operations, too


def test_a_damaged_file_counts_as_none(folder: Path) -> None:
    first = start()
    expected = answers()
    first.save()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    damaged = [b"", b"\0" * len(whole), whole[:-1], whole[: len(whole) // 2]]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 101)]
    for data in damaged:
        file.write_bytes(data)
        start()
        assert number_compiled() == len(EXPRESSIONS)
    first.save()
    start()
    assert answers() == expected


def test_nothing_is_taken_from_another_user_or_python(monkeypatch: pytest.MonkeyPatch) -> None:
    first = start()
    answers()
    first.save()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        start()
    assert number_compiled() == len(EXPRESSIONS)
    monkeypatch.setattr("repros.model.compiled._VERSION", b"cpython-40")
    start()
    assert number_compiled() == len(EXPRESSIONS)


@pytest.mark.parametrize("name", ["a file", "~nobody-has-this-name/cache"])
def test_without_a_cache_folder_everything_is_compiled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / name) if name == "a file" else name)
    for _ in range(2):
        kept = start()
        assert number_compiled() == len(EXPRESSIONS)
        kept.save()
    assert [*tmp_path.iterdir()] == [tmp_path / "a file"]


def test_a_user_without_a_home_gets_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry(_: int) -> None:
        raise KeyError

    for name in (cache.VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    monkeypatch.chdir(tmp_path)
    kept = start()
    answers()
    kept.save()
    assert not [*tmp_path.iterdir()]


def test_an_interrupt_costs_the_file_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    kept = start()
    answers()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        try:
            kept.save()
        except KeyboardInterrupt:  # which would end pytest
            pytest.fail("interrupted")
    assert not [*folder.iterdir()]


@pytest.mark.parametrize(
    "other",
    [
        "sys.modules['re._compiler'] = None; del re._compiler",
        "del re._compiler.compile",
        "del re._compiler._sre",
        "del re._compiler._sre.compile",
        "re._compiler.compile = len",
    ],
)
def test_another_python_compiles_everything(other: str, tmp_path: Path) -> None:
    program = "sys.argv = ['repros', '--version']; runpy.run_module('repros', run_name='__main__')"
    if other.endswith("_sre.compile"):  # the module is one for all
        other = "from types import SimpleNamespace; re._compiler._sre = SimpleNamespace()"
    command = [sys.executable, "-c", f"{OTHER_PYTHON}\n{other}\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("repros ")


def test_methods_are_made_however_python_asks_for_them() -> None:
    start()
    execute = vars(dataclasses)["exec"]
    source = "value = 1"
    for _ in range(2):
        spaces: list[dict[str, object]] = [{} for _ in range(4)]
        execute(source, spaces[0])
        execute(source, {}, spaces[1])
        execute(source, globals={}, locals=spaces[2])
        execute(compile(source, "", "exec"), {}, spaces[3])
        assert [space["value"] for space in spaces] == [1] * 4
    caller: dict[str, object] = {"exec": execute}
    eval("exec('value = 2')", caller)  # noqa: S307 - a call that names neither
    assert caller["value"] == 2


def test_a_scanner_works_and_debugging_prints(capsys: pytest.CaptureFixture[str]) -> None:
    start()
    for _ in range(2):
        scanner = re.Scanner([("[a-z]+", lambda _, word: word), (" ", None)])  # type: ignore[attr-defined]
        assert scanner.scan("ab c") == (["ab", "c"], "")
        re.compile("ab", re.DEBUG)
        assert "LITERAL 97" in capsys.readouterr().out
        re.purge()


def test_an_expression_within_another_keeps_neither_for_the_other() -> None:
    """As a signal's handler may compile between any two steps of an expression."""
    restore()
    own = COMPILER["_sre"]

    def make(pattern: str, *arguments: object) -> object:
        made = own.compile(pattern, *arguments)
        if pattern == "outer":
            re.compile("inner")
        return made

    COMPILER["_sre"] = SimpleNamespace(**{**vars(own), "compile": make})
    kept = CompiledCode("test")
    kept.keep_expressions()
    re.compile("outer")
    for pattern in ("outer", "inner"):
        assert kept._find((pattern, 0))
        re.purge()
        assert re.compile(pattern).findall("outer inner") == [pattern]


def test_a_forked_child_compiles_while_threads_do() -> None:
    start()
    ended = threading.Event()

    def work(name: str) -> None:
        for number in count():
            re.compile(f"({name}|b|c)+x{number}(foo|bar)*")
            if ended.is_set():
                return

    threads = [threading.Thread(target=work, args=(name,)) for name in ("y", "z")]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            child = os.fork()
            if not child:
                signal.alarm(60)  # one that waits forever is killed
                re.compile(f"child{number}[a-z]")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("words", [["simulate", "--gpus", "1", "--", "true"], []])
def test_each_end_of_the_program_keeps_the_file(words: list[str], folder: Path) -> None:
    environ = dict(os.environ)
    if not words:  # completion ends by SystemExit
        environ |= {"_REPROS_COMPLETE": "bash_complete", "COMP_WORDS": "repros mat", "COMP_CWORD": "1"}
    subprocess.run([sys.executable, "-m", "repros", *words], env=environ, capture_output=True, check=False)
    name = words[0] if words[:1] == ["simulate"] else "triage"
    assert [file.name.split("-")[1] for file in folder.glob("compiled-*")] == [name]


def test_processes_that_begin_at_once_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "repros", "--help"]
    for _ in range(2):
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
        assert len({(process.communicate()[0], process.returncode) for process in running}) == 1
    (file,) = (tmp_path / "repros" / "snapshots").iterdir()
    assert file.name.startswith("compiled-")
