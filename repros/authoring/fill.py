"""Puts a filled form into the template of a repro script; what the header refuses stays as the template has it."""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.authoring.form import Filled, toml
from repros.engine import header
from repros.stacks import load_stacks

Say = Callable[[str], None]
"""Takes one line for a person."""
Overrides = dict[tuple[str, str], Any]
"""Values by table and key."""

_WIDTH = 115
_SIGNATURE = ("raises", "match")
_CODE = """\
def {name}(strategy, accelerator):
{body}
"""
_MAIN = """\
VARIANTS = {{{variants}}}


def main(variant="failing", strategy="{strategy}", accelerator="{accelerator}"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {{variant!r}}, choose from {{', '.join(VARIANTS)}}")
    VARIANTS[variant](strategy, accelerator)


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def fill(template: str, filled: Filled, refused: Say) -> str:
    """Return the script.

    Args:
        template: a script that passes the header's check.
        filled: what somebody wrote.
        refused: takes a sentence for each thing that could not be taken over.
    """
    overrides: Overrides = dict(filled.keys)
    home = overrides.get(("tool.repro", "home"))
    if home is not None and home not in load_stacks():
        refused(f"home = {toml(home)}: no such stack; known: {', '.join(load_stacks())}")
        del overrides["tool.repro", "home"]
    text = _documented(_coded(template, filled, refused), filled.sections)
    while True:
        lines = _with_keys(text.splitlines(), overrides)
        error = _refusal(lines)
        if error is None:
            return "\n".join(lines) + "\n"
        table, key = _at(lines, error.line)
        # Of a table that is wrong as a whole, such as half a signature, all that was filled in.
        guilty = [one for one in overrides if one == (table, key)] or [one for one in overrides if one[0] == table]
        if not guilty:
            raise error
        for one in guilty:
            refused(str(error).partition(": ")[2])
            del overrides[one]


def _refusal(lines: Sequence[str]) -> header.HeaderError | None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            header.read(script)
        except header.HeaderError as error:
            return error
    return None


def _with_keys(lines: list[str], overrides: Overrides) -> list[str]:
    """Return the script with the header's keys set."""
    if any(table.endswith(".claimed") for table, _ in overrides):
        end = lines.index("# ///")
        claimed = ["# [tool.repro.variants.claimed]", '# outcome = "fails"', '# about = "the documented solution"']
        lines = [*lines[:end], "#", *claimed, *lines[end:]]
    if ("tool.repro.variants.failing", "ends") in overrides:
        start, end = _span(lines, "tool.repro.variants.failing")
        kept = [line for line in lines[start:end] if not re.match(rf"# ({'|'.join(_SIGNATURE)}) = ", line)]
        lines = [*lines[:start], *kept, *lines[end:]]
    for (table, key), value in overrides.items():
        start, end = _span(lines, table)
        line = f"# {key} = {toml(value)}"
        at = next((n for n in range(start, end) if lines[n].startswith(f"# {key} = ")), None)
        lines = [*lines[:end], line, *lines[end:]] if at is None else [*lines[:at], line, *lines[at + 1 :]]
    return lines


def _span(lines: Sequence[str], table: str) -> tuple[int, int]:
    """Return the lines of a table, its heading and empty ones at its end left out."""
    heading = f"# [{table}]" if table else "# /// script"
    start = lines.index(heading) + 1
    end = next(n for n in range(start, len(lines)) if re.match(r"# \[\w|# ///$|#$", lines[n]))
    return start, end


def _at(lines: Sequence[str], number: int) -> tuple[str, str]:
    """Return the table and key that a line of the header stands for."""
    table = ""
    for line in lines[:number]:
        if opened := re.match(r"# \[([\w.]+)\]", line):
            table = opened[1]
    key = re.match(r"# (\w+) = ", lines[number - 1])
    return table, key[1] if key else ""


def _documented(text: str, sections: Mapping[str, str]) -> str:
    """Return the script with the docstring's paragraphs set."""
    for label, said in sections.items():
        safe = f"{label}: {said}".replace("\\", "\\\\").replace('"""', "'''")
        paragraph = "\n".join(textwrap.wrap(safe, _WIDTH, break_long_words=False, break_on_hyphens=False))
        if paragraph.endswith('"'):
            paragraph += "."
        before, mark, after = text.partition(f"\n{label}: ")
        text = f"{before}\n{paragraph}\n{after.partition(chr(10))[2]}" if mark else text
    return text


def _coded(text: str, filled: Filled, refused: Say) -> str:
    """Return the script with a function of each variant's code in the place of the template's."""
    if not filled.code:
        return text
    names = ["failing", "fixed"]
    if any(table.endswith(".claimed") for table, _ in filled.keys) or "claimed" in filled.code:
        names.append("claimed")
    functions = [_CODE.format(name=name, body=_body(name, filled.code.get(name, ""), refused)) for name in names]
    strategy, accelerator = (_first(filled, key, other) for key, other in (("strategies", "ddp"), ("devices", "cpu")))
    variants = ", ".join(f'"{name}": {name}' for name in names)
    head = text[: text.index("import sys\n")]
    main = _MAIN.format(
        variants=variants, strategy=strategy, accelerator="cuda" if accelerator == "sim" else accelerator
    )
    return f"{head}import sys\n\n\n" + "\n\n".join([*functions, main])


def _first(filled: Filled, key: str, other: str) -> str:
    given = filled.keys.get(("tool.repro", key)) or [other]
    return given[0] if re.fullmatch(r"[a-z][a-z0-9_]*", given[0]) else other


def _body(name: str, code: str, refused: Say) -> str:
    """Return code as a function's body; what would not be the same there is put into comments."""
    if not code:
        return "    raise NotImplementedError"
    body = textwrap.indent(code, "    ")
    try:
        ast.parse(f"def {name}():\n{body}\n")
    except (SyntaxError, ValueError) as error:
        refused(f"the code of {name} is not Python as it stands ({error}); it is there as a comment")
    else:
        if '"""' not in code and "'''" not in code and "from __future__" not in code:
            return body
        refused(f"the code of {name} cannot be indented as it stands; it is there as a comment")
    return textwrap.indent(code, "    # ", lambda _: True) + "\n    raise NotImplementedError"
