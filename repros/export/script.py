"""A repro as a standalone script: pinned to versions on which it was measured, with one variant as the default.

The header of a script in the catalogue allows many releases. A reader of the exported file needs the one set of
versions on which it fails as described: `uv run FILE` makes that environment and runs the script in it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros import __version__
from repros.errors import ReprosError, UnknownNameError
from repros.model import Device, Environment, Repro, Variant
from repros.model.stack import Stack

_BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$\n?", re.MULTILINE)
_TABLE = re.compile(r"^# \[[\w.\"-]+\]\s*$", re.MULTILINE)
_MAIN = re.compile(r"^def main\([^)]*\)", re.MULTILINE)
_DEFAULT = re.compile(r"(?P<name>\bvariant|\bstrategy)(?P<equals>[^,=]*=\s*)(?P<quote>[\"'])(?P<value>.*?)(?P=quote)")


class ExportError(ReprosError):
    """A script that cannot be exported."""


@dataclass(frozen=True)
class Pins:
    """The versions that an exported script requires."""

    source: str
    """Their origin, as the end of a sentence: `stack 2023-12, on which it was measured`."""
    python: str
    """`3.11`"""
    direct: tuple[str, ...]
    """Requirements for the script's own dependencies."""
    transitive: tuple[str, ...] = ()
    """Requirements for the dependencies of these; pinned, because newer releases may not be compatible."""


def pins_of_stack(repro: Repro, stack: Stack, *, measured: bool = False) -> Pins:
    """Return the stack's versions of the script's dependencies, direct and transitive.

    The lock names, for each distribution, the distributions that need it. It does not contain torch's CUDA packages,
    because torch pins them itself.

    Args:
        repro: the repro.
        stack: the stack.
        measured: whether there is evidence of the repro on this stack, which the script then says.

    Raises:
        ExportError: the stack lacks a dependency.
    """
    pins = stack.pins
    direct = _direct_dependencies(repro)
    if missing := [name for name in direct if name not in pins]:
        raise ExportError(
            f"stack {stack.name} has no {missing[0]}, which {repro.id} needs; choose another with --stack."
        )
    needed = set(direct)
    while more := {pin.name for pin in pins.values() if pin.required_by & needed} - needed:
        needed |= more
    return Pins(
        source=f"stack {stack.name}" + (", on which it was measured" if measured else ""),
        python=stack.python,
        direct=tuple(str(pins[name]) for name in direct),
        transitive=tuple(str(pins[name]) for name in sorted(needed - set(direct))),
    )


def pins_of_environment(repro: Repro, environment: Environment) -> Pins:
    """Return an environment's versions of the script's direct dependencies.

    Raises:
        ExportError: the environment lacks a dependency.
    """
    direct = _direct_dependencies(repro)
    if missing := [name for name in direct if name not in environment.versions]:
        raise ExportError(
            f"{environment.name} has no {missing[0]}, which {repro.id} needs; choose another with --python."
        )
    return Pins(
        source="the versions of an environment",
        python=".".join(environment.python_version.split(".")[:2]),
        direct=tuple(f"{name}=={_public_version(environment.versions[name])}" for name in direct),
    )


def pins_of_versions(repro: Repro, versions: Mapping[str, str], python: str) -> Pins:
    """Return a result's versions of the script's direct dependencies; unrecorded ones keep their requirement."""
    known = {name: version for name in _direct_dependencies(repro) if (version := versions.get(name))}
    rest = [str(spec) for spec in repro.dependencies if canonicalize_name(spec.name) not in known]
    return Pins(
        source="the versions that it was run with",
        python=".".join(python.split(".")[:2]),
        direct=(*(f"{name}=={_public_version(version)}" for name, version in known.items()), *rest),
    )


def export_script(repro: Repro, pins: Pins, variant: str = "failing", *, documented: bool = True) -> str:
    """Return the text of the exported script.

    Args:
        repro: the repro.
        pins: the versions for its header.
        variant: the variant that runs by default.
        documented: whether to keep the `[tool.repro]` table.

    Raises:
        UnknownNameError: an unknown variant.
        ExportError: the script has no `main` whose defaults can be set.
    """
    chosen = repro.variant(variant)
    if chosen is None:
        raise UnknownNameError("variant", variant, [known.name for known in repro.variants])
    source = repro.path.read_text(encoding="utf-8")
    block = _BLOCK.search(source)
    assert block is not None  # the header was read
    tables = _TABLE.search(block["content"])
    rest = block["content"][tables.start() :] if documented and tables else ""
    tail = ["#", rest.rstrip("\n")] if rest else []
    head = "\n".join(["# /// script", *_comment_lines(_header_lines(pins)), *tail, "# ///", ""])
    body = _add_hardware_check(_set_defaults(repro, chosen, source[block.end() :]), repro, chosen)
    return f"{_opening_comment(repro, pins, chosen)}{head}{body}"


def _direct_dependencies(repro: Repro) -> list[str]:
    return list(dict.fromkeys(canonicalize_name(spec.name) for spec in repro.dependencies))


def _public_version(version: str) -> str:
    """Return a version without its local part, because the default index does not have `2.13.0+cpu`."""
    return version.partition("+")[0]


def _opening_comment(repro: Repro, pins: Pins, variant: Variant) -> str:
    lines = [
        f"{repro.id}: {repro.title}",
        f"From repros {__version__}, pinned to {pins.source}.",
        f"Run it: uv run FILE [variant] [strategy] [accelerator]. Without a variant it runs {variant.name!r}.",
    ]
    if note := _hardware_note(repro, variant):
        lines.append(note)
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _hardware_note(repro: Repro, variant: Variant) -> str | None:
    """Return a sentence about the GPUs that a variant needs; None if it runs on the CPU."""
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
    """Return lines of TOML as comments, the form that PEP 723 wants, after a check that they are valid."""
    toml = list(lines)
    for requirement in tomllib.loads("\n".join(toml))["dependencies"]:
        Requirement(requirement)
    return [f"# {line}" for line in toml]


def _set_defaults(repro: Repro, variant: Variant, body: str) -> str:
    """Return the script with defaults of `main` that run the variant, under a strategy that it has.

    Raises:
        ExportError: the script has no `main`.
    """
    main = _MAIN.search(body)
    if main is None:
        raise ExportError(f"{repro.path} has no main(variant, strategy, accelerator); it cannot be exported.")
    choices = {"variant": (variant.name,), "strategy": variant.strategies}

    def set_default(found: re.Match[str]) -> str:
        allowed = choices[found["name"]]
        return found[0] if found["value"] in allowed else f'{found["name"]}{found["equals"]}"{allowed[0]}"'

    return body[: main.start()] + _DEFAULT.sub(set_default, main[0]) + body[main.end() :]


def _add_hardware_check(body: str, repro: Repro, variant: Variant) -> str:
    """Return the script with a check that ends it with one sentence, before a library fails, if GPUs are missing."""
    note = _hardware_note(repro, variant)
    start = 'if __name__ == "__main__":\n'
    if note is None or start not in body or not {"sys", "torch"} <= _imported_modules(body):
        return body
    check = (
        f'    if sys.argv[3:4] in ([], ["cuda"]) and torch.cuda.device_count() < {repro.minimum}:\n'
        f"        sys.exit({_quote(note)})\n"
    )
    return body.replace(start, start + check)


def _imported_modules(body: str) -> set[str]:
    """Return the modules that the script imports under their own names."""
    return {alias.name for node in ast.parse(body).body if isinstance(node, ast.Import) for alias in node.names}


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def script_file_name(repro: Repro) -> Path:
    """Return the default name of an exported script."""
    return Path(f"{repro.id.lower().replace('-', '_')}.py")
