"""The simulated accelerator works without this project: it imports the standard library, torch and itself."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[2]
SIM = ROOT / "repros" / "simulated_gpus"
FILES = sorted(SIM.glob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Yield the first part of every absolute import, and a relative one that leaves the package as written."""
    depth = len(path.relative_to(SIM).parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level > depth:
            yield ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SIM)))
def test_it_imports_the_standard_library_torch_and_itself(path: Path) -> None:
    assert set(imports(path)) <= {*sys.stdlib_module_names, "torch"}


def run_copy(folder: Path, script: str) -> str:
    """Run a script that can import a copy of the package as `lifted`, but nothing else of this project."""
    shutil.copytree(SIM, folder / "lifted", ignore=shutil.ignore_patterns("__pycache__", "tests", "tools"))
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_copy_under_another_name_is_imported_and_installed(tmp_path: Path) -> None:
    script = """
import lifted
from lifted import build, startup
startup.install()
print(lifted.SimUnavailableError.__module__)
"""
    assert run_copy(tmp_path, script) == "lifted.errors\n"


def test_installing_it_imports_neither_pathlib_nor_the_builder(tmp_path: Path) -> None:
    script = """
import sys
before = set(sys.modules)
from lifted import startup
startup.install()
print(*sorted({"pathlib", "subprocess", "lifted.build", "torch"} & (set(sys.modules) - before)))
"""
    assert run_copy(tmp_path, script) == "\n"
