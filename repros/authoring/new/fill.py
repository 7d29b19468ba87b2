"""Fill the template of a repro script from a form; a value that the header rejects leaves that of the template."""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from repros.authoring.new.form import (
    CLAIMED_TABLE,
    FAILING_TABLE,
    REPRO_TABLE,
    FilledForm,
    HeaderKey,
    Value,
    toml_value,
)
from repros.engine import header
from repros.engine.header import HeaderError
from repros.engine.stacks import load_stacks
from repros.engine.values import quote
from repros.model.settings import PACKAGE, CatalogueLocations

Report = Callable[[str], None]
"""Receives a sentence for the user."""

_WIDTH = 115
_CODE = """\
def {name}(strategy, accelerator):
{body}
"""
_MAIN = """\
VARIANTS = {{{variants}}}


def main(variant="failing", strategy="{strategy}", accelerator="{accelerator}"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {{variant!r}}, choose from {{', '.join(VARIANTS)}}")
{call}

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
_CALL = """\
    VARIANTS[variant](strategy, accelerator)
"""
_TORCHRUN = """\
    if "RANK" in os.environ:
        VARIANTS[variant](strategy, accelerator)
    else:  # without arguments: as torchrun does
        where = ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node={processes}"]
        run.main([*where, __file__, *sys.argv[1:]])
"""
_RUN = "from torch.distributed import run"


def fill_template(template: str, form: FilledForm, report: Report, places: CatalogueLocations = PACKAGE) -> str:
    """Return the filled script.

    Args:
        template: a script with a valid header.
        form: the answers.
        report: receives a sentence per rejected answer.
        places: the catalogues in use, whose stacks can be its reference stack.
    """
    stacks = load_stacks(places)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, "draft.py")
        values: dict[HeaderKey, Value] = {}
        # 'kind' comes last, since most kinds need 'documented'.
        for place, value in sorted(form.values.items(), key=lambda item: item[0].key == "kind"):
            if place.key == "home" and value not in stacks:
                report(f"home = {quote(value)}: no such stack; known: {', '.join(stacks)}")
                continue
            _write_draft(draft, template, {**values, place: value})
            try:
                header.read(draft)
            except HeaderError as error:
                report(str(error).removeprefix(f"{draft}:{error.line}: "))
            else:
                values[place] = value
        _write_draft(draft, template, values)
        restated = {HeaderKey(*place) for place in header.restated_keys(draft)}
    text = _set_sections(_set_code(template, form, values, report), form.sections)
    return "\n".join(_set_values(text.splitlines(), values, restated)) + "\n"


def _write_draft(draft: Path, template: str, values: Mapping[HeaderKey, Value]) -> None:
    """Write the template with these values, even if the header rejects one."""
    draft.write_text("\n".join(_set_values(template.splitlines(), values, ())), encoding="utf-8")


def _set_values(lines: list[str], values: Mapping[HeaderKey, Value], restated: Collection[HeaderKey]) -> list[str]:
    """Return the script with the header's keys set, except those whose value is the default."""
    if any(place.table == CLAIMED_TABLE for place in values):
        end = lines.index("# ///")
        claimed = [f"# [{CLAIMED_TABLE}]", '# outcome = "fails"', '# about = "the documented solution"']
        lines = [*lines[:end], "#", *claimed, *lines[end:]]
    if HeaderKey(FAILING_TABLE, "ends") in values:
        start, end = _table_span(lines, FAILING_TABLE)
        remaining = [line for line in lines[start:end] if not line.startswith(("# raises = ", "# match = "))]
        lines = [*lines[:start], *remaining, *lines[end:]]
    for (table, key), value in values.items():
        start, end = _table_span(lines, table)
        written = [] if (table, key) in restated else [f"# {key} = {toml_value(value)}"]
        at = next((n for n in range(start, end) if lines[n].startswith(f"# {key} = ")), None)
        lines = [*lines[:end], *written, *lines[end:]] if at is None else [*lines[:at], *written, *lines[at + 1 :]]
    return lines


def _table_span(lines: Sequence[str], table: str) -> tuple[int, int]:
    """Return the range of a table's lines, without its heading and trailing blank lines."""
    heading = f"# [{table}]" if table else "# /// script"
    start = lines.index(heading) + 1
    end = next(n for n in range(start, len(lines)) if re.match(r"# \[\w|# ///$|#$", lines[n]))
    return start, end


def _set_sections(text: str, sections: Mapping[str, str]) -> str:
    """Return the script with the docstring's paragraphs set."""
    for label, section in sections.items():
        escaped = f"{label}: {section}".replace("\\", "\\\\").replace('"""', "'''")
        paragraph = "\n".join(textwrap.wrap(escaped, _WIDTH, break_long_words=False, break_on_hyphens=False))
        if paragraph.endswith('"'):
            paragraph += "."
        before, found, after = text.partition(f"\n{label}: ")
        text = f"{before}\n{paragraph}\n{after.partition(chr(10))[2]}" if found else text
    return text


def _set_code(text: str, form: FilledForm, values: Mapping[HeaderKey, Value], report: Report) -> str:
    """Return the script with one function per variant instead of those of the template."""
    code = form.code
    if not code:
        return text
    names = ["failing", "fixed"]
    if "claimed" in code or any(place.table == CLAIMED_TABLE for place in values):
        names.append("claimed")
    functions = [_CODE.format(name=name, body=_body(name, code.get(name, ""), report)) for name in names]
    accelerator = _first_name(values, "devices", "cpu")
    processes = values.get(HeaderKey(REPRO_TABLE, "processes"), 1)
    main = _MAIN.format(
        variants=", ".join(f'"{name}": {name}' for name in names),
        strategy=_first_name(values, "strategies", "ddp"),
        accelerator="cuda" if accelerator == "sim" else accelerator,
        call=_TORCHRUN.format(processes=processes) if _RUN in form.definitions else _CALL,
    )
    head = text[: text.index('"""\n', text.index('"""') + 3)] + '"""\n\n'
    return f"{head}{form.definitions or 'import sys'}\n\n\n" + "\n\n".join([*functions, main])


def _first_name(values: Mapping[HeaderKey, Value], key: str, default: str) -> str:
    names = values.get(HeaderKey(REPRO_TABLE, key))
    return names[0] if isinstance(names, list) else default


def _body(name: str, code: str, report: Report) -> str:
    """Return code as the body of a function, or as a comment if indentation would break or change it."""
    if not code:
        return "    raise NotImplementedError"
    body = textwrap.indent(code, "    ")
    try:
        ast.parse(f"def {name}():\n{body}\n")
    except (SyntaxError, ValueError) as error:
        report(f"the code of {name} is not valid Python ({error}); it was added as a comment")
    else:
        if '"""' not in code and "'''" not in code and "from __future__" not in code:
            return body
        report(f"the code of {name} cannot be indented without changing it; it was added as a comment")
    return textwrap.indent(code, "    # ", lambda _: True) + "\n    raise NotImplementedError"
