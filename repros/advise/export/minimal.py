"""Reduce a repro's script to chosen variants, for a bug report upstream.

The script of the catalogue has every documented fix, and a table of variants for the engine. The minimal script has the
chosen variants with the code that they use. If there is only one, it has no table: its functions are called by name.
Comments and layout are those of the catalogue.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from repros.advise.export.fold_branches import fold
from repros.advise.export.pins import ExportError
from repros.advise.export.source_edits import SourceEdit, SourceText, globals_read, names_loaded, without_blank_lines
from repros.model import Repro

_LONGEST_LINE = 120
_PARAMETER = re.compile(r"variant(=\"\w*\")?(, )?")


def minimal_code(repro: Repro, code: str, variants: Sequence[str]) -> str:
    """Return a script's code, from its docstring on, with only the chosen variants.

    Args:
        repro: the repro.
        code: the script without its header.
        variants: names of variants; the first one is the default.

    Raises:
        ExportError: the script does not select its variant in the way of the catalogue's scripts.
    """
    text = fold(code, variants)
    source = SourceText(text)
    table = _table(repro, source)
    if not set(variants) <= _entries(source, table).keys():
        raise _refusal(repro)
    text = _without_choice(source, table, variants[0]) if len(variants) == 1 else _reduce_table(source, table, variants)
    return without_blank_lines(_without_unused_imports(_without_unused(text)))


def _table(repro: Repro, source: SourceText) -> ast.Assign:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIANTS":
            return node
    raise _refusal(repro)


def _refusal(repro: Repro) -> ExportError:
    return ExportError(f"{repro.path} has no VARIANTS = {{v.__name__: v for v in (failing, fixed)}}; export it whole.")


def _reduce_table(source: SourceText, table: ast.Assign, variants: Sequence[str]) -> str:
    """Return the script with a table of the chosen variants."""
    entries = _entries(source, table)
    if isinstance(table.value, ast.DictComp):
        text = f"VARIANTS = {{v.__name__: v for v in ({', '.join(variants)})}}\n"
    else:
        text = "".join(["VARIANTS = {\n", *(f'    "{name}": {entries[name]},\n' for name in variants), "}\n"])
    edit = source.replace_lines(table.lineno, table.end_lineno or table.lineno, text)
    return edit.apply(source.text)


def _entries(source: SourceText, table: ast.Assign) -> dict[str, str]:
    """Return the text of each variant's value in the table; empty if the table has another form."""
    if isinstance(table.value, ast.Dict):
        pairs = zip(table.value.keys, table.value.values, strict=True)
        return {ast.literal_eval(key): source.segment(value) for key, value in pairs if key is not None}
    names = table.value.generators[0].iter if isinstance(table.value, ast.DictComp) else ast.Tuple([])
    return {node.id: node.id for node in ast.walk(names) if isinstance(node, ast.Name)}


def _without_choice(source: SourceText, table: ast.Assign, variant: str) -> str:
    """Return the script of one variant, without the table, the check of the name, and the parameters for it."""
    entry = _entries(source, table)[variant]
    needs_brackets = isinstance(ast.parse(entry, mode="eval").body, (ast.Lambda, ast.IfExp))
    text = source.text
    while edit := next(_inlined(SourceText(text), f"({entry})" if needs_brackets else entry), None):
        text = edit.apply(text)
    while edit := next(_without_parameter(SourceText(text)), None):
        text = edit.apply(text)
    for node in ast.walk((main := SourceText(text)).tree):
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            edits = [
                main.replace(name, f'"{variant}"')
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and name.id == "variant"
            ]
            for edit in sorted(edits, key=lambda edit: -edit.start):
                text = edit.apply(text)
            header = main.line(node.lineno)
            text = text.replace(header, _PARAMETER.sub("", header, count=1), 1)
    return text


def _inlined(source: SourceText, entry: str) -> Iterator[SourceEdit]:
    """Yield the edits that replace the table by the variant's own value."""
    for node in ast.walk(source.tree):
        is_refusal = isinstance(node, ast.If) and ast.unparse(node.test) == "variant not in VARIANTS"
        is_table = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIANTS"
        if is_refusal or is_table:
            assert isinstance(node, ast.stmt)
            yield source.remove(node)
        elif isinstance(node, ast.Subscript) and ast.unparse(node) == "VARIANTS[variant]":
            yield source.replace(node, entry)


def _without_parameter(source: SourceText) -> Iterator[SourceEdit]:
    """Yield the edits that remove `variant` from functions that do not read it, and from the calls of them."""
    functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef) and node.name != "main"]
    for function in functions:
        if "variant" not in [argument.arg for argument in function.args.args] or "variant" in names_loaded(function):
            continue
        uses = sum(isinstance(node, ast.Name) and node.id == function.name for node in ast.walk(source.tree))
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _passes(node, function.name)]
        if uses > len(calls):
            continue  # another caller passes the variant's name
        for call in calls:
            others = [source.segment(value) for value in call.args if not _is_name(value, "variant")]
            if len(others) < len(call.args):
                yield source.replace(call, f"{source.segment(call.func)}({', '.join(others)})")
        header = source.line(function.lineno)
        start = source.text.index(header)
        header_without = _PARAMETER.sub("", header, count=1).replace("(, ", "(").replace(", )", ")")
        yield SourceEdit(start, start + len(header), header_without)


def _passes(call: ast.Call, function: str) -> bool:
    """Return whether a call calls the function, or passes it with its arguments: `launch(train, variant)`."""
    return _is_name(call.func, function) or any(_is_name(value, function) for value in call.args)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _without_unused(text: str) -> str:
    """Return the script without unused functions, classes and constants."""
    source = SourceText(text)
    used = _used(source.tree)
    # In reverse, so that earlier positions stay valid; a removal makes no other name unused.
    for node, following in reversed([*pairwise([*source.tree.body, None])]):
        names = _defined(node) if node else set()
        if node and names and not names & used:
            if following and _is_text(following):  # a constant's documentation
                text = source.remove(following).apply(text)
            text = source.remove(node).apply(text)
    while edit := next(_unused_locals(SourceText(text)), None):
        text = edit.apply(text)
    return text


def _unused_locals(source: SourceText) -> Iterator[SourceEdit]:
    """Yield the edits that remove local variables that only removed branches used."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        used = names_loaded(function) | {
            name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id not in used
            ):
                yield source.remove(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a function, a class or an assignment of constants defines; empty for other statements."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return set() if node.name == "main" else {node.name}
    if isinstance(node, ast.Assign):
        return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {node.target.id} if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else set()


def _used(tree: ast.Module) -> set[str]:
    """Return the names reachable from the statements that run at import."""
    by_name = {name: node for node in tree.body for name in _defined(node)}
    reachable = [node for node in tree.body if not _defined(node)]
    used: set[str] = set()
    while reachable:
        new = globals_read(reachable.pop()) - used
        used |= new
        reachable += [by_name[name] for name in new if name in by_name]
    return used


def _without_unused_imports(text: str) -> str:
    source = SourceText(text)
    used = names_loaded(source.tree)
    for node in reversed(source.tree.body):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        kept = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in used]
        if not kept:
            text = source.remove(node).apply(text)
        elif len(kept) < len(node.names):
            node.names = kept
            text = source.replace_lines(node.lineno, node.end_lineno or node.lineno, _import(node)).apply(text)
    return re.sub(r"(?<=\S\n)\n{2}(?=(?:import|from) )", "\n", text)


def _import(node: ast.Import | ast.ImportFrom) -> str:
    line = ast.unparse(node)
    if len(line) <= _LONGEST_LINE:
        return f"{line}\n"
    start, _, names = line.partition(" import ")
    return f"{start} import (\n" + "".join(f"    {name},\n" for name in names.split(", ")) + ")\n"
