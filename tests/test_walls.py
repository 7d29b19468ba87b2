"""Walls: the outside names no framework, the inside imports nothing of the outside, scripts import neither."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "repros"
INSIDE = PACKAGE / "inside"
CATALOGUE = PACKAGE / "catalogue"

FRAMEWORKS = {
    "torch",
    "lightning",
    "lightning_fabric",
    "pytorch_lightning",
    "accelerate",
    "bitsandbytes",
    "transformers",
    "numpy",
}
OLDEST_PYTHON = (3, 9)


def sources(*places: Path, without: tuple[Path, ...] = ()) -> list[Path]:
    found = [path for place in places for path in sorted(place.rglob("*.py"))]
    return [path for path in found if not any(place in path.parents for place in without)]


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


OUTSIDE_FILES = sources(PACKAGE, without=(INSIDE, CATALOGUE))
INSIDE_FILES = sources(INSIDE)
SCRIPTS = sources(CATALOGUE)


def imported(path: Path) -> Iterator[str]:
    """Yield the first part of every absolute import, anywhere in the file."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (str(word.value).split(".")[0] for word in node.args[:1] if isinstance(word, ast.Constant))


@pytest.mark.parametrize("path", OUTSIDE_FILES, ids=named)
def test_outside_names_no_framework(path: Path) -> None:
    assert not FRAMEWORKS & set(imported(path))


def test_outside_imports_without_any_framework() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in OUTSIDE_FILES
        if path.name != "__main__.py"
    ]
    script = f"""
import importlib, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {FRAMEWORKS!r}:
            raise AssertionError(f"{{name}} was imported outside")

sys.meta_path.insert(0, Wall())
for name in {modules!r}:
    importlib.import_module(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", INSIDE_FILES, ids=named)
def test_inside_imports_the_standard_library_and_torch_only(path: Path) -> None:
    # The engine loads the folder as `repros_inside`; `_sim` is the compiled accelerator.
    allowed = {*sys.stdlib_module_names, "torch", "repros_inside", "_sim"}
    assert set(imported(path)) <= allowed


@pytest.mark.parametrize("path", INSIDE_FILES, ids=named)
def test_inside_has_no_relative_import_from_above_itself(path: Path) -> None:
    depth = len(path.relative_to(INSIDE).parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= depth


@pytest.mark.parametrize("path", [*INSIDE_FILES, *SCRIPTS], ids=named)
def test_inside_and_scripts_are_valid_in_the_oldest_python(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=OLDEST_PYTHON)


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_a_script_imports_nothing_of_this_project(path: Path) -> None:
    assert not {"repros", "repros_inside"} & set(imported(path))


def test_the_catalogue_is_data_and_not_a_package() -> None:
    assert list(CATALOGUE.rglob("__init__.py")) == []
