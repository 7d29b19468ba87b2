"""A repro as a standalone script, pinned to measured versions, with one variant as the default.

The header of a script in the catalogue allows many releases. A reader of the exported file needs one set of versions on
which it fails as described: `uv run FILE` creates that environment and runs the script in it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.requirements import Requirement

from repros import __version__
from repros.advise.export.minimal import minimal_code
from repros.advise.export.pins import ExportError, Pins
from repros.engine.header.block import BLOCK
from repros.model import Device, Repro, Variant
from repros.model.errors import UnknownNameError

_TABLE = re.compile(r"^# \[[\w.\"-]+\]\s*$", re.MULTILINE)
_MAIN = re.compile(r"^def main\([^)]*\)", re.MULTILINE)
_DEFAULT = re.compile(r"(?P<name>\bvariant|\bstrategy)(?P<equals>[^,=]*=\s*)(?P<quote>[\"'])(?P<value>.*?)(?P=quote)")


def export_script(repro: Repro, pins: Pins, variant: str = "failing", *, documented: bool = True) -> str:
    """Return the text of the exported script.

    Args:
        repro: the repro.
        pins: the versions for its header.
        variant: the default variant.
        documented: whether to keep the `[tool.repro]` table.

    Raises:
        UnknownNameError: an unknown variant.
        ExportError: the script has no `main` whose defaults can be set.
    """
    chosen = _find(repro, variant)
    header, code = _parts(repro)
    tables = _TABLE.search(header)
    rest = header[tables.start() :] if documented and tables else ""
    opening = _opening_comment(repro, pins, chosen, ["[variant]", "[strategy]", "[accelerator]"])
    body = _add_hardware_check(_set_defaults(repro, chosen, code), repro, chosen, arguments=3)
    return f"{opening}{_header(pins, rest)}{body}"


def export_minimal(repro: Repro, pins: Pins, variants: Sequence[str]) -> str:
    """Return the text of a script with only the chosen variants, without the `[tool.repro]` table.

    Args:
        repro: the repro.
        pins: the versions for its header.
        variants: names of variants; the first one is the default.

    Raises:
        UnknownNameError: an unknown variant.
        ExportError: the script does not select its variant in the way of the catalogue's scripts.
    """
    chosen = [_find(repro, name) for name in dict.fromkeys(variants)]
    choice = ["[variant]"] if len(chosen) > 1 else []
    words = [*choice, "[strategy]", "[accelerator]"]
    code = minimal_code(repro, _parts(repro)[1], [variant.name for variant in chosen])
    body = _add_hardware_check(_set_defaults(repro, chosen[0], code), repro, chosen[0], arguments=len(words))
    return f"{_opening_comment(repro, pins, chosen[0], words)}{_header(pins)}{body}"


def export_for_report(repro: Repro, pins: Pins, others: Iterable[str] = ()) -> str:
    """Return the script for a bug report: the variants `failing`, `fixed` if there is one, and the requested ones.

    A script that selects its variant in another way is exported completely, without its table.

    Raises:
        ExportError: the script has no `main` whose defaults can be set.
    """
    try:
        return export_minimal(repro, pins, report_variants(repro, others))
    except ExportError:
        return export_script(repro, pins, documented=False)


def report_variants(repro: Repro, others: Iterable[str] = ()) -> list[str]:
    """Return the names of `failing`, `fixed` if there is one, and the requested variants, in the header's order."""
    wanted = {"failing", "fixed", *others}
    return [variant.name for variant in repro.variants if variant.name in wanted]


def _find(repro: Repro, name: str) -> Variant:
    variant = repro.variant(name)
    if variant is None:
        raise UnknownNameError("variant", name, [known.name for known in repro.variants])
    return variant


def _parts(repro: Repro) -> tuple[str, str]:
    """Return the lines in a script's header, and its code from the docstring on."""
    source = repro.path.read_text(encoding="utf-8")
    block = BLOCK.search(source)
    assert block is not None  # the header was parsed
    return block["content"], source[block.end() :].removeprefix("\n")


def _header(pins: Pins, rest: str = "") -> str:
    tail = ["#", rest.rstrip("\n")] if rest else []
    return "\n".join(["# /// script", *_comment_lines(_header_lines(pins)), *tail, "# ///", ""])


def _opening_comment(repro: Repro, pins: Pins, variant: Variant, words: Sequence[str]) -> str:
    default = f"Without a variant it runs {variant.name!r}." if "[variant]" in words else f"It is {variant.name!r}."
    lines = [
        f"{repro.id}: {repro.title}",
        f"From repros {__version__}, pinned to {pins.source}.",
        f"Run it: uv run FILE {' '.join(words)}. {default}",
    ]
    if note := _hardware_note(repro, variant):
        lines.append(note)
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _hardware_note(repro: Repro, variant: Variant) -> str | None:
    """Return a sentence about the GPUs that a variant requires; None if it runs on the CPU."""
    if Device.CPU in variant.devices:
        return None
    gpus = "a GPU" if repro.minimum == 1 else f"{repro.minimum} GPUs"
    sim = f"; without GPUs, `repros run {repro.id}` simulates them" if Device.SIM in variant.devices else ""
    return f"{repro.id} needs {gpus} and a CUDA build of torch{sim}."


def _header_lines(pins: Pins) -> Iterable[str]:
    yield f'requires-python = "=={pins.python}.*"'
    yield "dependencies = ["
    yield from (f'    "{pin}",' for pin in pins.direct)
    if pins.transitive:
        yield "    # dependencies of these"
        yield from (f'    "{pin}",' for pin in pins.transitive)
    yield "]"


def _comment_lines(lines: Iterable[str]) -> Sequence[str]:
    """Return lines of TOML as comments, as PEP 723 requires, after validating them."""
    toml = list(lines)
    for requirement in tomllib.loads("\n".join(toml))["dependencies"]:
        Requirement(requirement)
    return [f"# {line}" for line in toml]


def _set_defaults(repro: Repro, variant: Variant, body: str) -> str:
    """Return the script with the variant, and one of its strategies, as the defaults of `main`.

    Raises:
        ExportError: the script has no `main`.
    """
    main = _MAIN.search(body)
    if main is None:
        raise ExportError(f"{repro.path} has no main(variant, strategy, accelerator); it cannot be exported.")
    choices = {"variant": (variant.name,), "strategy": variant.strategies}

    def set_default(default: re.Match[str]) -> str:
        allowed = choices[default["name"]]
        return default[0] if default["value"] in allowed else f'{default["name"]}{default["equals"]}"{allowed[0]}"'

    return body[: main.start()] + _DEFAULT.sub(set_default, main[0]) + body[main.end() :]


def _add_hardware_check(body: str, repro: Repro, variant: Variant, arguments: int) -> str:
    """Return the script with a check that exits with an error message if GPUs are missing, before a library fails."""
    note = _hardware_note(repro, variant)
    start = 'if __name__ == "__main__":\n'
    if note is None or start not in body or not {"sys", "torch"} <= _imported_modules(body):
        return body
    check = (
        f'    if sys.argv[{arguments}:{arguments + 1}] in ([], ["cuda"]) '
        f"and torch.cuda.device_count() < {repro.minimum}:\n"
        f"        sys.exit({_quote(note)})\n"
    )
    return body.replace(start, start + check)


def _imported_modules(body: str) -> set[str]:
    """Return the modules that the script imports by `import NAME`."""
    return {alias.name for node in ast.parse(body).body if isinstance(node, ast.Import) for alias in node.names}


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def script_file_name(repro: Repro) -> Path:
    """Return the default name of an exported script."""
    return Path(f"{repro.id.lower().replace('-', '_')}.py")
