"""Kept expressions and methods: those of a new compilation, whatever the file has, and compiled once."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repros.model import cache
from repros.model.compiled import CompiledCode

EXPRESSIONS = tuple(rf"(?P<name>[a-z]{{{number}}})\d+(?:x|y)?(?P=name)|(other)\b" for number in range(1, 11))
TEXT = "ab12xab other abc7abc"
COMPILER = vars(re._compiler)
OWN = {name: COMPILER[name] for name in ("compile", "_sre", "_code")}


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


def test_a_large_file_begins_anew_with_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repros.model.compiled._FEWEST", 1)
    first = start()
    re.compile("used once")
    assert number_compiled() == len(EXPRESSIONS)
    first.save()
    monkeypatch.setattr("repros.model.compiled._MOST_BYTES", 1)
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


def test_processes_that_begin_at_once_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "repros", "--help"]
    for _ in range(2):
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
        assert len({(process.communicate()[0], process.returncode) for process in running}) == 1
    (file,) = (tmp_path / "repros" / "snapshots").iterdir()
    assert file.name.startswith("compiled-")
