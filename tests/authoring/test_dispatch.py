"""Every script of the catalogue, and every template, chooses its variant by the same few lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from repros.authoring.new.skeletons import SKELETONS
from repros.model.settings import CATALOGUE

REFUSAL = """\
if variant not in VARIANTS:
    sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
"""
SCRIPTS = {str(path.relative_to(CATALOGUE)): path.read_text("utf-8") for path in sorted(CATALOGUE.rglob("*.py"))}
TEMPLATES = {f"template {name}": skeleton.code for name, skeleton in SKELETONS.items()}


def departures(text: str) -> Iterator[str]:
    """Yield what a script does in another way, with the line.

    `VARIANTS` is a dict of the variants by name: written out, or a comprehension over names that are written out. The
    first statement of `main` refuses an unknown one. Everything else is `VARIANTS[variant]`.
    """
    tree = ast.parse(text)
    assigned = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["VARIANTS"]
    ]
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    if len(assigned) != 1 or len(mains) != 1:
        yield "line 1: expected one VARIANTS and one main"
        return
    if not is_table(assigned[0].value):
        yield f"line {assigned[0].lineno}: expected VARIANTS = {{v.__name__: v for v in (failing, fixed)}}"
    if ast.dump(mains[0].body[0]) != ast.dump(ast.parse(REFUSAL).body[0]):
        yield f"line {mains[0].body[0].lineno}: expected main to begin with\n{REFUSAL}"


def is_table(value: ast.expr) -> bool:
    """Return whether an expression is a dict of variants, each of which is named where a reader looks for it."""
    if isinstance(value, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in value.keys)
    if not isinstance(value, ast.DictComp) or len(value.generators) != 1:
        return False
    names = value.generators[0].iter
    is_written_out = isinstance(names, ast.Tuple) and all(isinstance(name, ast.Name) for name in names.elts)
    return is_written_out and ast.unparse(value).startswith("{v.__name__: v for v in (")


@pytest.mark.of_each_script
@pytest.mark.parametrize("name", [*SCRIPTS, *TEMPLATES])
def test_a_script_chooses_its_variant_as_all_do(name: str) -> None:
    assert list(departures({**SCRIPTS, **TEMPLATES}[name])) == []


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("VARIANTS = (failing, fixed)\ndef main(variant):\n    {refusal}", 1),
        ("VARIANTS = {v.__name__: v for v in (*(failing, fixed), other)}\ndef main(variant):\n    {refusal}", 1),
        ("VARIANTS = {v.__name__: v for v in (failing, fixed)}\ndef main(variant):\n    VARIANTS[variant]()", 3),
        ("def main(variant):\n    {refusal}", 1),
    ],
)
def test_another_way_is_named_with_its_line(code: str, line: int) -> None:
    text = code.replace("{refusal}", REFUSAL.replace("\n    ", "\n        "))
    assert [problem.partition(":")[0] for problem in departures(text)] == [f"line {line}"]
