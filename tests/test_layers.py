"""The import graph of `repros` and the sizes of its modules: layers, no cycle, no presenter in a domain module.

The catalogue is data, and `test_walls.py` has the import boundary of `inside`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "repros"

LAYERS = (
    ("__main__",),
    ("cli",),
    ("authoring", "cluster", "pytest_plugin"),
    ("scripts",),
    ("advise", "diagnose"),
    ("text",),
    ("engine", "simulate"),
    ("inside", "model"),
    ("simulated_gpus",),
    ("__init__",),
)
"""From top to bottom; a module imports only from its own folder and from lower layers."""

PRESENTERS = ("repros.text", "repros.advise.audit.formats")
"""Packages that turn values into text."""
CLEANER = "repros.text.control"
"""Removes characters from any text, and shows nothing."""
VIEWS = {"text", "json_format", "markdown"}
"""Names of the modules that do so for one folder."""
FRONT_ENDS = ("__main__", "cli", "pytest_plugin", "text")
"""Folders whose purpose is to present: all of their modules may import presenters."""

CONTRACT = "repros.inside.contract"
"""What the inside and the outside share; anybody may import it."""

LOOSE_MODULES = {"__init__", "__main__"}
MOST_LINES, MOST_FUNCTION_LINES = 500, 40


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


ELSEWHERE = (PACKAGE / "catalogue", PACKAGE / "simulated_gpus/tests", PACKAGE / "simulated_gpus/tools")
"""Data, and what surrounds a distribution of its own."""
FILES = {
    module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if not any(map(path.is_relative_to, ELSEWHERE))
}


def folder(module: str) -> str:
    """Return the part of a module's name that decides its layer: the room that it is in."""
    return [*module.split("."), "__init__"][1]


def is_presenter(module: str) -> bool:
    """Return whether a module turns values into text."""
    if module == CLEANER:
        return False
    is_view = module.rpartition(".")[2] in VIEWS
    return is_view or any(module == name or module.startswith(f"{name}.") for name in PRESENTERS)


def imported(module: str) -> Iterator[str]:
    """Yield the modules of this project that a module imports, at its top or in a function."""
    path = FILES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (resolve(alias.name) for alias in node.names if alias.name.split(".")[0] == "repros")
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] == "repros":
                yield from (resolve(f"{base}.{alias.name}") for alias in node.names)


def resolve(name: str) -> str:
    """Return the module that a dotted name is, or that defines it."""
    while name not in FILES:
        name = name.rpartition(".")[0]
    return name


@cache
def graph() -> dict[str, frozenset[str]]:
    """Return every module's imports."""
    return {module: frozenset(imported(module)) - {module} for module in FILES}


def test_every_folder_has_a_layer() -> None:
    assert {folder(module) for module in FILES} == {name for layer in LAYERS for name in layer}


def test_a_module_imports_only_from_its_folder_and_from_layers_below() -> None:
    level = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    wrong = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if folder(module) != folder(other) and level[folder(module)] >= level[folder(other)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_through_others() -> None:
    assert (cycle := find_cycle(graph())) is None, " -> ".join(cycle or ())


def find_cycle(edges: dict[str, frozenset[str]]) -> list[str] | None:
    """Return one cycle, its first module repeated at its end, or None."""
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in finished:
            return None
        for other in sorted(edges[module]):
            if found := visit(other, [*path, module]):
                return found
        finished.add(module)
        return None

    return next(filter(None, (visit(module, []) for module in edges)), None)


def test_a_cycle_is_found() -> None:
    tree = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset[str]()}
    assert find_cycle(tree) is None
    cycle = find_cycle(tree | {"c": frozenset("b")})
    assert cycle is not None
    assert cycle[0] == cycle[-1]
    assert set(pairwise(cycle)) == {("b", "c"), ("c", "b")}


def test_no_domain_module_imports_a_presenter() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in graph().items()
        if folder(module) not in FRONT_ENDS and not is_presenter(module)
        for other in sorted(others)
        if is_presenter(other)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_package_has_no_other_loose_module() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == LOOSE_MODULES


def test_only_what_starts_processes_imports_inside() -> None:
    inside = {module for module in FILES if folder(module) == "inside"} - {"repros.inside", CONTRACT}
    importers = {folder(module) for module, others in graph().items() if others & inside}
    assert importers <= {"diagnose", "engine", "inside", "scripts", "simulate"}


def test_the_product_neither_imports_nor_starts_what_only_the_checkout_has() -> None:
    wrong = [
        f"{relative(path)}: {name}"
        for path in FILES.values()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in named_modules(node)
        if re.match(r"(tools|tests)(\.|$)", name)
    ]
    assert not wrong, "\n".join(wrong)


def named_modules(node: ast.AST) -> list[str]:
    """Return the modules that a node imports, or names in a text, as an argument of `python -m` would be."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    is_name = isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value
    return [node.value] if is_name else []  # type: ignore[attr-defined] # narrowed above


def test_an_arrow_to_the_tools_is_found() -> None:
    source = 'import tools.site\nfrom tests import factories\nrun("-m", "tools.pages")\nread("tests/x.toml")\nx = 3'
    nodes = ast.walk(ast.parse(source))
    assert [name for node in nodes for name in named_modules(node)] == [
        *("tools.site", "tests", "tools.pages", "tests/x.toml"),
    ]


def test_sim_imports_nothing_of_the_rest() -> None:
    sim = {module: others for module, others in graph().items() if folder(module) == "simulated_gpus"}
    outside = {other for others in sim.values() for other in others if folder(other) != "simulated_gpus"}
    assert sim
    assert outside == set()


@pytest.mark.parametrize("place", ["repros", "tests", "noxfile.py", "conftest.py"])
def test_no_module_is_long(place: str) -> None:
    files = [ROOT / place, *(ROOT / place).rglob("*.py")]
    lines = {relative(path): len(path.read_text("utf-8").splitlines()) for path in files if path.is_file()}
    assert lines
    assert {path: number for path, number in lines.items() if number > MOST_LINES} == {}


def test_no_function_is_long() -> None:
    assert {name: number for name, number in functions() if number > MOST_FUNCTION_LINES} == {}


def functions() -> Iterator[tuple[str, int]]:
    """Yield each function and its lines without the docstring, which for a command is its help text."""
    for path in FILES.values():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                number = (node.end_lineno or 0) - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    number -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                yield f"{relative(path)}:{node.name}", number


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


OF_EXTRAS = {"pytest": {"pytest_plugin", "simulate"}, "ray": {"cluster"}, "grpc": {"cluster"}}
"""Packages that an extra brings, and the only folders that may import them."""
NOT_INSTALLED = {"inside", "simulated_gpus"}
"""Folders at any depth whose modules run in the environment under test."""


def test_a_module_imports_only_dependencies() -> None:
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    dependencies = {re.split("[>=]", line)[0].replace("-", "_") for line in requirements}
    known = {"repros", *sys.stdlib_module_names, *dependencies}
    others = {
        (module, name)
        for module in FILES
        if not NOT_INSTALLED & {*module.split(".")}
        for node in ast.walk(ast.parse(FILES[module].read_text("utf-8")))
        for name in imported_packages(node)
        if name not in known and folder(module) not in OF_EXTRAS.get(name, ())
    }
    assert others == set()


def imported_packages(node: ast.AST) -> set[str]:
    """Return the packages at the top of what a statement imports by its absolute name."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {(node.module or "").partition(".")[0]} if isinstance(node, ast.ImportFrom) and not node.level else set()
