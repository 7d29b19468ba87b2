from __future__ import annotations

import ast
import io
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from repros.engine.digest.inputs import INSIDE, PACKAGE, ROOTS
from repros.engine.digest.python import normal_form
from repros.engine.digest.sources import PythonSources

SOURCES = PythonSources({"repros": PACKAGE})
MODULES = sorted(SOURCES.closure([*(PACKAGE / root for root in ROOTS), *INSIDE.rglob("*.py")]))
modules = st.sampled_from(MODULES).map(lambda path: path.read_text(encoding="utf-8"))
words = st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="\\\"'"), max_size=20)


def form(source: str) -> str:
    return normal_form(ast.parse(source), lambda _: None)


@given(modules, words, st.data())
def test_a_comment_changes_nothing(source: str, text: str, data: st.DataObject) -> None:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    ends = sorted({token.start[0] for token in tokens if token.type in {tokenize.NEWLINE, tokenize.NL}})
    lines = source.splitlines()
    number = data.draw(st.sampled_from(ends)) - 1
    lines[number] += f"  # {text}"
    assert form("\n".join(lines)) == form(source)


@given(modules)
def test_layout_changes_nothing(source: str) -> None:
    assert form(ast.unparse(ast.parse(source))) == form(source)


@given(modules, words)
def test_docstrings_change_nothing(source: str, text: str) -> None:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = text
    reworded = ast.unparse(tree)
    assume(reworded != ast.unparse(ast.parse(source)))
    assert form(reworded) == form(source)


SWAPS: dict[type[ast.AST], ast.AST] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.And: ast.Or(),
    ast.Or: ast.And(),
    ast.Not: ast.USub(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
}


class Mutant(ast.NodeTransformer):
    """Changes the n-th constant, operator, branch or name, not counting docstrings."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.changed = False

    def chosen(self) -> bool:
        self.left -= 1
        self.changed |= self.left == -1
        return self.left == -1

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        bare = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return node if bare else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return (
            ast.Constant(value=[node.value, "changed"][1] if node.value != "changed" else 0) if self.chosen() else node
        )

    def visit_If(self, node: ast.If) -> ast.AST:
        if self.chosen():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(f"{node.id}_", node.ctx) if self.chosen() else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self.chosen():
            node.attr += "_"
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if type(node) in SWAPS and self.chosen():
            return SWAPS[type(node)]
        return super().generic_visit(node)


@given(modules, st.integers(0, 2000))
def test_a_changed_constant_operator_branch_or_name_changes_the_form(source: str, number: int) -> None:
    mutant = Mutant(number)
    tree = ast.fix_missing_locations(mutant.visit(ast.parse(source)))
    assume(mutant.changed)
    assert normal_form(tree, lambda _: None) != form(source)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(1)", "f(1.0)"),
        ("f(1)", "f(True)"),
        ("f('a')", "f(b'a')"),
        ("x = {**a}", "x = {a: a}"),
        ("x[1:]", "x[:1]"),
        ("f(a, *b)", "f(*b, a)"),
        ("def f(a, /, b): ...", "def f(a, b): ..."),
        ("x = f'{a}b'", "x = f'{a}' 'c'"),
        ("x = f'{a!r}'", "x = f'{a}'"),
        ("if a:\n    b()", "if a:\n    pass\nb()"),
        ("import a", "import b"),
        ("a - -b", "a--b - 0"),
    ],
)
def test_different_code_has_different_forms(one: str, other: str) -> None:
    assert form(one) != form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 'a' 'b'", "x = 'ab'"),
        ("x = f'a' f'{b}' 'c'", "x = f'a{b}c'"),
        ("x = (1)", "x = 1"),
        ("class A(B):\n    '''Prose.'''", "class A(B):\n    pass"),
        ("x = 1\n'''Prose of x.'''", "x = 1"),
        ("x = 0x10", "x = 16"),
    ],
)
def test_equivalent_code_has_the_same_form(one: str, other: str) -> None:
    assert form(one) == form(other)


MINORS = ("3.11", "3.12", "3.13", "3.14")


def interpreter(minor: str) -> str | None:
    """Return a working interpreter of that version; a stub of a version manager on the path may not work."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == minor:
        return sys.executable
    found = shutil.which(f"python{minor}")
    managed = sorted(Path.home().glob(f".pyenv/versions/{minor}.*/bin/python{minor}"))
    for candidate in [*([found] if found else []), *map(str, managed)]:
        done = subprocess.run([candidate, "-c", ""], capture_output=True, check=False)
        if done.returncode == 0:
            return candidate
    return None


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from repros.engine.digest.sources import PythonSources, cpp_digest
package = Path(sys.argv[1], "repros")
sources = PythonSources({"repros": package})
print(sources.digest([package / root for root in sys.argv[2:]] + sorted(package.rglob("inside/**/*.py"))))
print(sources.digest(sorted(package.rglob("catalogue/**/*.py"))), cpp_digest(package / "simulated_gpus/csrc"))
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("minor", MINORS)
def test_every_python_gives_the_same_digest(minor: str) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"no Python {minor} on this machine")
    command = ["-c", SCRIPT, str(PACKAGE.parent), *ROOTS]
    digests = [subprocess.check_output([interpreter, *command], text=True) for interpreter in (sys.executable, python)]
    assert digests[0] == digests[1]
