"""Imports tried before a run, and what is remembered of those that fail."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.environments.processes import Processes
from repros.engine.stacks import stack
from repros.model import Signature
from repros.scripts.bisect.imports import ImportFailure, ImportMemory, imported_modules, is_documented, try_imports

HERE = Path(sys.executable)


def test_the_modules_of_a_script_without_the_standard_library(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, torch.nn as nn\nfrom lightning.pytorch import Trainer\nimport sys\nimport torch.nn\n")
    assert imported_modules(script) == ["torch.nn", "lightning.pytorch"]


def test_the_first_import_that_fails_is_named() -> None:
    assert try_imports(HERE, ["json", "packaging.version"], Processes()) is None
    failure = try_imports(HERE, ["json", "no_such_module", "another"], Processes())
    assert failure == ImportFailure("no_such_module", "ModuleNotFoundError: No module named 'no_such_module'")


def test_an_import_that_fails_as_documented_is_run() -> None:
    failure = ImportFailure("x", "RuntimeError: no kernel for cuda:0 here")
    assert is_documented(failure, Signature("RuntimeError", ("no kernel for sim:1",)))
    assert not is_documented(failure, Signature("RuntimeError", ("another message",)))


def test_a_failure_is_a_sentence_with_what_was_installed(sentences: SnapshotAssertion) -> None:
    failure = ImportFailure("x", "ImportError: no y")
    assert str(failure) == sentences
    assert str(replace(failure, note="a note")) == sentences


def test_an_interpreter_that_is_killed_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os, sys\nos.kill(os.getpid(), int(sys.argv[-1]))\n")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    for number, lasting in [(9, False), (11, True)]:
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -X faulthandler=0 {tmp_path}/dies.py {number}\n")
        python.chmod(0o755)
        failure = try_imports(python, ["torch"], Processes())
        assert failure is not None
        assert (failure.module, failure.lasting, str(number) in failure.why) == ("torch", lasting, True)
        memory = ImportMemory(tmp_path / f"{number}.jsonl", stack("current"))
        memory.keep("lightning==2.0.1", failure)
        assert (tmp_path / f"{number}.jsonl").exists() is lasting


def test_what_is_imported_is_compiled_even_where_the_user_wants_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "imported.py").touch()
    (tmp_path / "other.py").touch()
    assert try_imports(HERE, ["imported"], Processes()) is None
    assert [file.name.partition(".")[0] for file in (tmp_path / "__pycache__").iterdir()] == ["imported"]


def test_a_failure_is_remembered_for_this_stack_and_module_only(tmp_path: Path) -> None:
    file, current = tmp_path / "imports.jsonl", stack("current")
    ImportMemory(file, current).keep("lightning==2.0.1", ImportFailure("lightning.pytorch", "ImportError: x"))
    with file.open("a") as opened:
        opened.write('\n{"stack": "half a li')
    again = ImportMemory(file, current)
    remembered = ImportFailure("lightning.pytorch", "ImportError: x", "remembered")
    assert again.find("lightning==2.0.1", ["torch", "lightning.pytorch"]) == remembered
    assert again.find("lightning==2.0.1", ["torch"]) is None
    assert again.find("lightning==2.0.2", ["lightning.pytorch"]) is None
    assert ImportMemory(file, replace(current, python="3.9")).find("lightning==2.0.1", ["lightning.pytorch"]) is None


def test_a_failure_is_remembered_with_the_dependencies_that_were_installed(tmp_path: Path) -> None:
    file, current, day = tmp_path / "imports.jsonl", stack("current"), dt.date(2023, 3, 30)
    note = f"with the dependencies of {day}"
    ImportMemory(file, current).keep("lightning==2.0.1", ImportFailure("lightning", "ImportError: y", note), day)
    again = ImportMemory(file, current)
    assert again.find("lightning==2.0.1", ["lightning"]) is None
    remembered = again.find("lightning==2.0.1", ["lightning"], day)
    assert remembered is not None
    assert remembered.note.startswith(f"{note}; ")
