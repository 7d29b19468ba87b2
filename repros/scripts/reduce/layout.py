"""The layout of a script: without comments, and with the usual blank lines."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from itertools import pairwise

from repros.engine.source import PROBLEMS, Block, Edit, first_line
from repros.scripts.reduce.code import WIDTH, Code, statements_of

_BLOCK = re.compile(r"^# /// (?P<kind>[\w-]+)$\n(?:^#(?: .*)?$\n)+?^# ///$\n?", re.MULTILINE)
"""A block of PEP 723: the only comment that says something to a program."""


def tidy(source: str) -> str:
    """Return a source without comments and blank lines, but with the block of PEP 723; each statement begins a line."""
    header = _BLOCK.search(source)
    try:
        bare = _without_comments(source)
        code = Code(bare)
        if _shares_lines(code):
            bare = _without_comments(ast.unparse(code.tree) + "\n")
    except (*PROBLEMS, tokenize.TokenError):
        bare = _without_comments(ast.unparse(Code(source).tree) + "\n")
    return f"{header[0].rstrip()}\n{bare}" if header else bare


def lay_out(source: str) -> str:
    """Return a tidy source with blank lines behind the imports and around functions and classes.

    A statement or a value whose lines fit into one is in one: what it had between them is gone.
    """
    code = Code(source)
    nodes = (node for node in ast.walk(code.tree) if isinstance(node, ast.stmt | ast.expr) and node not in code.in_text)
    code = Code(code.apply(filter(None, (_on_one_line(code, node) for node in nodes))))
    source = code.source
    lines, blank = source.removesuffix("\n").split("\n"), dict[int, int]()
    for body, number in _bodies(code.tree):
        for before, after in pairwise(body):
            blocks = isinstance(before, Block) or isinstance(after, Block)
            ends_imports = number > 1 and _imports(before) and not _imports(after)
            if blocks or ends_imports or (number > 1 and _is_own(before) and _imports(after) and not _is_own(after)):
                blank[first_line(after)] = number if blocks else 1
    header = _BLOCK.search(source)
    if header and code.tree.body:
        blank.setdefault(code.tree.body[0].lineno, 1)
    laid_out = (line for number, text in enumerate(lines, 1) for line in [*[""] * blank.get(number, 0), text])
    return "\n".join(laid_out) + "\n"


def count_lines(source: str) -> int:
    """Return the number of lines with code: neither blank nor a comment."""
    return sum(1 for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def count_tokens(source: str) -> int:
    """Return the number of names, numbers, texts and operators of a source; 0 if it has no tokens of Python."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    try:
        return sum(token.type not in skipped for token in tokenize.generate_tokens(io.StringIO(source).readline))
    except (*PROBLEMS, tokenize.TokenError):
        return 0


def _without_comments(source: str) -> str:
    lines = source.split("\n")
    within = set[int]()  # lines that a text of several lines goes on in
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.start[0] != token.end[0]:
            within.update(range(token.start[0], token.end[0]))
    return "".join(f"{line}\n" for number, line in enumerate(lines, 1) if line.strip() or number in within)


def _on_one_line(code: Code, node: ast.stmt | ast.expr) -> Edit | None:
    """Return the edit that puts a statement, the head of one with a block, or a value into one line, if it fits."""
    begin, end = code.span(node)
    block = getattr(node, "body", None) if isinstance(node, ast.stmt) else None
    if block:
        end = code.lines(block[0])[0]
    text = code.text(begin, end).rstrip()
    if "\n" not in text or (block and block[0].lineno == node.lineno):
        return None
    end = begin + len(text.encode())
    rest = "\n    pass" * bool(block) + "\nexcept E: pass" * isinstance(node, ast.Try)
    around = "({})" if isinstance(node, ast.expr) else f"{{}}{rest}"
    for joined in _joined(text.splitlines()):
        fits = code.columns(begin, end) - len(text) + len(joined) <= WIDTH
        if fits and _is_same(around.replace("{}", joined), around.replace("{}", text)):
            return Edit(begin, end, joined)
    return None


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines as one, without a comma at the end of a bracket and with it, which a tuple of one needs."""
    for comma in (r",?", ""):
        yield re.sub(rf"(?<=[(\[{{])\n|{comma}\n(?=[)\]}}])", "", "\n".join(map(str.strip, lines))).replace("\n", " ")


def _is_same(one: str, other: str) -> bool:
    """Return whether two texts of a statement at no depth are the same to Python."""
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except SyntaxError:  # lines that a backslash joins
        return False


def _shares_lines(code: Code) -> bool:
    """Return whether two statements share a line."""
    starts = [statement.lineno for statement in statements_of(code.tree)]
    return len(starts) != len(set(starts))


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield the module's statements and those of each class, with the blank lines around their functions."""
    yield tree.body, 2
    yield from ((node.body, 1) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _is_own(statement: ast.stmt) -> bool:
    """Return whether a statement imports from the standard library."""
    name = statement.names[0].name if isinstance(statement, ast.Import) else getattr(statement, "module", None)
    return _imports(statement) and str(name).partition(".")[0] in sys.stdlib_module_names


def _imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)
