"""Reduce a repro's script to chosen variants, for a bug report upstream.

The script of the catalogue has every documented fix, and a table of variants for the engine. The minimal script has the
chosen variants with the code that they use. If there is only one, it has no table: its functions are called by name.
Comments and layout are those of the catalogue.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from repros.advise.export.fold_branches import fold
from repros.advise.export.pins import ExportError
from repros.engine.source import Edit, Source, edit_repeatedly
from repros.model import Repro

_LONGEST_LINE = 120
_BLANK_LINES = re.compile(r"\n{4,}")
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
    source = Source(fold(code, variants))
    table = _table(repro, source)
    if not set(variants) <= _entries(source, table).keys():
        raise _refusal(repro)
    text = _without_choice(source, table, variants[0]) if len(variants) == 1 else _reduce_table(source, table, variants)
    return _BLANK_LINES.sub("\n\n\n", _without_unused_imports(_without_unused(text)))


def _table(repro: Repro, source: Source) -> ast.Assign:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIANTS":
            return node
    raise _refusal(repro)


def _refusal(repro: Repro) -> ExportError:
    return ExportError(f"{repro.path} has no VARIANTS = {{v.__name__: v for v in (failing, fixed)}}; export it whole.")


def _reduce_table(source: Source, table: ast.Assign, variants: Sequence[str]) -> str:
    """Return the script with a table of the chosen variants."""
    entries = _entries(source, table)
    if isinstance(table.value, ast.DictComp):
        text = f"VARIANTS = {{v.__name__: v for v in ({', '.join(variants)})}}\n"
    else:
        text = "".join(["VARIANTS = {\n", *(f'    "{name}": {entries[name]},\n' for name in variants), "}\n"])
    return source.apply([Edit(*source.lines(table), text)])


def _entries(source: Source, table: ast.Assign) -> dict[str, str]:
    """Return the text of each variant's value in the table; empty if the table has another form."""
    if isinstance(table.value, ast.Dict):
        pairs = zip(table.value.keys, table.value.values, strict=True)
        return {ast.literal_eval(key): source.of(value) for key, value in pairs if key is not None}
    names = table.value.generators[0].iter if isinstance(table.value, ast.DictComp) else ast.Tuple([])
    return {node.id: node.id for node in ast.walk(names) if isinstance(node, ast.Name)}


def _without_choice(source: Source, table: ast.Assign, variant: str) -> str:
    """Return the script of one variant, without the table, the check of the name, and the parameters for it."""
    entry = _entries(source, table)[variant]
    needs_brackets = isinstance(ast.parse(entry, mode="eval").body, (ast.Lambda, ast.IfExp))
    text = edit_repeatedly(source.source, partial(_inlined, f"({entry})" if needs_brackets else entry))
    main = Source(edit_repeatedly(text, _without_parameter))
    edits = []
    for function in main.tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == "main":
            names = [node for node in ast.walk(function) if isinstance(node, ast.expr) and _is_name(node, "variant")]
            edits = [_header_edit(main, function), *(Edit(*main.span(name), f'"{variant}"') for name in names)]
    return main.apply(edits)


def _inlined(entry: str, source: Source) -> Iterator[Edit]:
    """Yield the edits that replace the table by the variant's own value."""
    for node in ast.walk(source.tree):
        is_refusal = isinstance(node, ast.If) and ast.unparse(node.test) == "variant not in VARIANTS"
        is_table = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIANTS"
        if is_refusal or is_table:
            assert isinstance(node, ast.stmt)
            yield source.removal(node)
        elif isinstance(node, ast.Subscript) and ast.unparse(node) == "VARIANTS[variant]":
            yield Edit(*source.span(node), entry)


def _without_parameter(source: Source) -> Iterator[Edit]:
    """Yield the edits that remove `variant` from functions that do not read it, and from the calls of them."""
    functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef) and node.name != "main"]
    for function in functions:
        if "variant" not in [argument.arg for argument in function.args.args] or "variant" in _names_read(function):
            continue
        uses = sum(isinstance(node, ast.Name) and node.id == function.name for node in ast.walk(source.tree))
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _passes(node, function.name)]
        if uses > len(calls):
            continue  # another caller passes the variant's name
        for call in calls:
            others = [source.of(value) for value in call.args if not _is_name(value, "variant")]
            if len(others) < len(call.args):
                yield Edit(*source.span(call), f"{source.of(call.func)}({', '.join(others)})")
        yield _header_edit(source, function)


def _header_edit(source: Source, function: ast.FunctionDef) -> Edit:
    """Return the edit that removes `variant` from the first line of a function."""
    begin, (header, _, _) = source.span(function)[0], source.of(function).partition("\n")
    without = _PARAMETER.sub("", header, count=1).replace("(, ", "(").replace(", )", ")")
    return Edit(begin, begin + len(header.encode()), without)


def _passes(call: ast.Call, function: str) -> bool:
    """Return whether a call calls the function, or passes it with its arguments: `launch(train, variant)`."""
    return _is_name(call.func, function) or any(_is_name(value, function) for value in call.args)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _without_unused(text: str) -> str:
    """Return the script without unused functions, classes and constants."""
    source = Source(text)
    used, unused = _used(source.tree), list[ast.stmt]()
    for node, following in pairwise([*source.tree.body, None]):
        names = _defined(node) if node else set()
        if node and names and not names & used:
            is_documented = following is not None and _is_text(following)  # a constant
            unused += [node, following] if following and is_documented else [node]
    return edit_repeatedly(source.apply(map(source.removal, unused)), _unused_locals)


def _unused_locals(source: Source) -> Iterator[Edit]:
    """Yield the edits that remove local variables that only removed branches used."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        used = _names_read(function) | {
            name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
        }
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id not in used
            ):
                yield source.removal(node)


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
        new = _globals_read(reachable.pop()) - used
        used |= new
        reachable += [by_name[name] for name in new if name in by_name]
    return used


def _names_read(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


def _globals_read(statement: ast.stmt) -> set[str]:
    """Return the module's global names that one of its statements reads, without parameters of the same name."""
    tables, names = [symtable.symtable(ast.unparse(statement), "", "exec")], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_module = table.get_type() == "module"
        symbols = (symbol for symbol in table.get_symbols() if symbol.is_referenced())
        names |= {symbol.get_name() for symbol in symbols if is_module or symbol.is_global()}
    return names


def _without_unused_imports(text: str) -> str:
    source, edits = Source(text), []
    used = _names_read(source.tree)
    for node in source.tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        kept = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in used]
        if not kept:
            edits.append(source.removal(node))
        elif len(kept) < len(node.names):
            node.names = kept
            edits.append(Edit(*source.lines(node), _import(node)))
    return re.sub(r"(?<=\S\n)\n{2}(?=(?:import|from) )", "\n", source.apply(edits))


def _import(node: ast.Import | ast.ImportFrom) -> str:
    line = ast.unparse(node)
    if len(line) <= _LONGEST_LINE:
        return f"{line}\n"
    start, _, names = line.partition(" import ")
    return f"{start} import (\n" + "".join(f"    {name},\n" for name in names.split(", ")) + ")\n"
