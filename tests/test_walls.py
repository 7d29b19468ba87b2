"""Walls: the outside names no framework, the inside imports nothing of the outside, scripts import neither."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "repros"
SIM = PACKAGE / "simulated_gpus"
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
HAS_RAY = importlib.util.find_spec("ray") is not None
"""Whether the extra is installed that `repros/cluster` needs."""


def sources(*places: Path, without: tuple[Path, ...] = ()) -> list[Path]:
    found = [path for place in places for path in sorted(place.rglob("*.py"))]
    return [path for path in found if not any(place in path.parents for place in without)]


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def runs_inside(place: Path) -> bool:
    """Return whether a file runs in the environment under test: one rule, that some folder of its path is `inside`."""
    return "inside" in place.relative_to(PACKAGE).parts[:-1]


INSIDE_FILES = [path for path in sources(PACKAGE, without=(CATALOGUE, SIM)) if runs_inside(path)]
PARENTS = sorted(
    {parent / "__init__.py" for path in INSIDE_FILES for parent in path.parents} & {*PACKAGE.rglob("__init__.py")}
)
"""Python runs these before what is below them."""
BEHIND = [*INSIDE_FILES, *(path for path in PARENTS if not runs_inside(path)), *sorted(SIM.glob("*.py"))]
OUTSIDE_FILES = [path for path in sources(PACKAGE, without=(CATALOGUE, SIM)) if path not in BEHIND]
SCRIPTS = sources(CATALOGUE)


def modules(path: Path) -> Iterator[str]:
    """Yield the module of every absolute import, anywhere in the file but in an `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text("utf-8"))
    for_types = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    tree.body = [node for node in tree.body if node not in for_types]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (str(word.value) for word in node.args[:1] if isinstance(word, ast.Constant))


def imported(path: Path) -> set[str]:
    """Return the first part of every absolute import."""
    return {name.partition(".")[0] for name in modules(path)}


def is_inside(module: str) -> bool:
    """Return whether a module of this project may run in the environment under test."""
    return "inside" in module.split(".") or f"{module}.".startswith("repros.simulated_gpus.")


def test_outside_names_no_framework() -> None:
    named_in = {named(path): FRAMEWORKS & imported(path) for path in OUTSIDE_FILES}
    assert {path: names for path, names in named_in.items() if names} == {}


def test_outside_imports_without_any_framework() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in OUTSIDE_FILES
        if path.name != "__main__.py" and (HAS_RAY or "cluster" not in path.parts)
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


def test_inside_imports_the_standard_library_and_torch_only() -> None:
    # `_sim` is the compiled accelerator.
    allowed = {*sys.stdlib_module_names, "torch", "_sim"}
    others = {
        named(path): {name for name in modules(path) if not is_inside(name) and name.partition(".")[0] not in allowed}
        for path in BEHIND
    }
    assert {path: names for path, names in others.items() if names} == {}


def test_inside_and_scripts_are_valid_in_the_oldest_python() -> None:
    refused = []
    for path in (*BEHIND, *SCRIPTS):
        try:
            ast.parse(path.read_text("utf-8"), filename=str(path), feature_version=OLDEST_PYTHON)
        except SyntaxError as error:
            refused.append((named(path), error.lineno, error.msg))
    assert refused == []


def test_no_script_imports_anything_of_this_project() -> None:
    assert [named(path) for path in SCRIPTS if "repros" in imported(path)] == []


def test_the_catalogue_is_data_and_not_a_package() -> None:
    assert list(CATALOGUE.rglob("__init__.py")) == []
