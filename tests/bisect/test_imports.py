"""Imports tried before a run, and what is remembered of those that fail."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from repros.bisect.imports import ImportFailure, ImportMemory, imported_modules, is_documented, try_imports
from repros.model import Signature
from repros.stacks import stack

HERE = Path(sys.executable)


def test_the_modules_of_a_script_without_the_standard_library(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, torch.nn as nn\nfrom lightning.pytorch import Trainer\nimport sys\nimport torch.nn\n")
    assert imported_modules(script) == ["torch.nn", "lightning.pytorch"]


def test_the_first_import_that_fails_is_named() -> None:
    assert try_imports(HERE, ["json", "packaging.version"]) is None
    failure = try_imports(HERE, ["json", "no_such_module", "another"])
    assert failure == ImportFailure("no_such_module", "ModuleNotFoundError: No module named 'no_such_module'")


def test_an_import_that_fails_as_documented_is_run() -> None:
    failure = ImportFailure("x", "RuntimeError: no kernel for cuda:0 here")
    assert is_documented(failure, Signature("RuntimeError", ("no kernel for sim:1",)))
    assert not is_documented(failure, Signature("RuntimeError", ("another message",)))


def test_a_failure_is_remembered_for_this_stack_and_module_only(tmp_path: Path) -> None:
    file, current = tmp_path / "imports.jsonl", stack("current")
    ImportMemory(file, current).keep("lightning==2.0.1", ImportFailure("lightning.pytorch", "ImportError: x"))
    with file.open("a") as opened:
        opened.write('\n{"stack": "half a li')
    again = ImportMemory(file, current)
    assert again.find("lightning==2.0.1", ["torch", "lightning.pytorch"]) == ImportFailure(
        "lightning.pytorch", "ImportError: x"
    )
    assert again.find("lightning==2.0.1", ["torch"]) is None
    assert again.find("lightning==2.0.2", ["lightning.pytorch"]) is None
    assert ImportMemory(file, replace(current, python="3.9")).find("lightning==2.0.1", ["lightning.pytorch"]) is None
