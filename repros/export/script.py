"""A repro as a file that stands alone: pinned to versions on which it was measured, one variant its default.

The header of a script in the catalogue has to fit every release; whoever is handed the file wants the one set of
versions on which it fails as described. `uv run FILE` makes that environment and runs it.
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
from repros.stacks.lock import read_lock

_BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$\n?", re.MULTILINE)
_TABLE = re.compile(r"^# \[[\w.\"-]+\]\s*$", re.MULTILINE)


class ExportError(ReprosError):
    """A script that cannot be made to stand alone."""


@dataclass(frozen=True)
class Pins:
    """The versions that an exported script asks for."""

    source: str
    """Where they are from, to end a sentence: `stack 2023-12, on which it was measured`."""
    python: str
    """`3.11`"""
    direct: tuple[str, ...]
    """What the script itself needs, as requirements."""
    brought: tuple[str, ...] = ()
    """What these bring with them; pinned too, since newer ones may not go with them."""


def pins_of_stack(repro: Repro, stack: Stack) -> Pins:
    """Return the stack's versions of what the script needs, and of all that these bring with them.

    The lock says of each distribution what it is there for; torch's CUDA packages are not in it, since torch pins
    them itself.
    """
    pins = read_lock(stack.lock)
    wanted = _wanted(repro)
    if missing := [name for name in wanted if name not in pins]:
        raise ExportError(
            f"stack {stack.name} has no {missing[0]}, which {repro.id} needs; choose another with --stack."
        )
    needed = set(wanted)
    while more := {pin.name for pin in pins.values() if pin.required_by & needed} - needed:
        needed |= more
    return Pins(
        source=f"stack {stack.name}" + (", on which it was measured" if stack.name == repro.home else ""),
        python=stack.python,
        direct=tuple(str(pins[name]) for name in wanted),
        brought=tuple(str(pins[name]) for name in sorted(needed - set(wanted))),
    )


def pins_of_environment(repro: Repro, environment: Environment) -> Pins:
    """Return an environment's versions of what the script needs; what these bring with them is left to the resolver."""
    wanted = _wanted(repro)
    if missing := [name for name in wanted if name not in environment.versions]:
        raise ExportError(
            f"{environment.name} has no {missing[0]}, which {repro.id} needs; choose another with --python."
        )
    return Pins(
        source="the versions of an environment",
        python=".".join(environment.python_version.split(".")[:2]),
        direct=tuple(f"{name}=={_public(environment.versions[name])}" for name in wanted),
    )


def pins_of_versions(repro: Repro, versions: Mapping[str, str], python: str) -> Pins:
    """Return the versions that a result was seen with, as far as it tells them."""
    known = {name: version for name in _wanted(repro) if (version := versions.get(name))}
    rest = [str(spec) for spec in repro.dependencies if canonicalize_name(spec.name) not in known]
    return Pins(
        source="the versions that it was run with",
        python=".".join(python.split(".")[:2]),
        direct=(*(f"{name}=={_public(version)}" for name, version in known.items()), *rest),
    )


def script(repro: Repro, pins: Pins, variant: str = "failing", *, documented: bool = True) -> str:
    """Return the script's text.

    Args:
        repro: which one.
        pins: the versions for its header.
        variant: which one runs when nothing else is asked for.
        documented: whether the `[tool.repro]` table stays.

    Raises:
        UnknownNameError: there is no such variant.
        ExportError: the script has no `main` whose defaults could be set.
    """
    chosen = repro.variant(variant)
    if chosen is None:
        raise UnknownNameError("variant", variant, [known.name for known in repro.variants])
    source = repro.path.read_text(encoding="utf-8")
    block = _BLOCK.search(source)
    assert block is not None  # the header was read
    tables = _TABLE.search(block["content"])
    rest = block["content"][tables.start() :] if documented and tables else ""
    head = "\n".join(["# /// script", *_comments(_top(pins)), *(["#", rest.rstrip("\n")] if rest else []), "# ///", ""])
    body = _guarded(_with_defaults(repro, chosen, source[block.end() :]), repro, chosen)
    return f"{_opening(repro, pins, chosen)}{head}{body}"


def _wanted(repro: Repro) -> list[str]:
    return list(dict.fromkeys(canonicalize_name(spec.name) for spec in repro.dependencies))


def _public(version: str) -> str:
    """Return a version without what a builder added: `2.13.0+cpu` is on no index that everybody has."""
    return version.partition("+")[0]


def _opening(repro: Repro, pins: Pins, variant: Variant) -> str:
    said = [
        f"{repro.id}: {repro.title}",
        f"From repros {__version__}, pinned to {pins.source}.",
        f"Run it: uv run FILE [variant] [strategy] [accelerator]. Without a variant it runs {variant.name!r}.",
    ]
    if need := _need(repro, variant):
        said.append(need)
    return "".join(f"# {line}\n" for line in said) + "\n"


def _need(repro: Repro, variant: Variant) -> str | None:
    """Return the sentence about the hardware that a variant needs, if it needs any."""
    if Device.CPU in variant.devices:
        return None
    gpus = "a GPU" if repro.minimum == 1 else f"{repro.minimum} GPUs"
    simulated = (
        f"; without, `repros run {repro.id}` shows it on a simulated accelerator"
        if Device.SIM in variant.devices
        else ""
    )
    return f"{repro.id} needs {gpus} and a CUDA build of torch{simulated}."


def _top(pins: Pins) -> Iterable[str]:
    yield f'requires-python = "=={pins.python}.*"'
    yield "dependencies = ["
    yield from (f'    "{pin}",' for pin in pins.direct)
    if pins.brought:
        yield "    # what these bring with them"
        yield from (f'    "{pin}",' for pin in pins.brought)
    yield "]"


def _comments(lines: Iterable[str]) -> Sequence[str]:
    """Return TOML as the comments that PEP 723 wants, once it is sure to be TOML."""
    found = list(lines)
    for requirement in tomllib.loads("\n".join(found))["dependencies"]:
        Requirement(requirement)
    return [f"# {line}" for line in found]


def _with_defaults(repro: Repro, variant: Variant, body: str) -> str:
    """Return the script with the defaults of `main` set to the variant and to what it runs under."""
    for node in ast.parse(body).body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            break
    else:
        raise ExportError(f"{repro.path} has no main(variant, strategy, accelerator); it cannot be exported.")
    given = dict(zip(reversed(node.args.args), reversed(node.args.defaults), strict=False))
    wanted = {"variant": (variant.name, (variant.name,)), "strategy": (variant.strategies[0], variant.strategies)}
    lines = body.splitlines(keepends=True)
    # From the right, so that columns stay true.
    for argument, default in given.items():
        name, fitting = wanted.get(argument.arg, ("", ()))
        if name and isinstance(default, ast.Constant) and default.value not in fitting:
            row = lines[default.lineno - 1].encode()
            changed = row[: default.col_offset] + f'"{name}"'.encode() + row[default.end_col_offset :]
            lines[default.lineno - 1] = changed.decode()
    return "".join(lines)


def _guarded(body: str, repro: Repro, variant: Variant) -> str:
    """Return the script with a check, where it needs GPUs, that says so in a sentence before a library fails."""
    need = _need(repro, variant)
    start = 'if __name__ == "__main__":\n'
    if need is None or start not in body or not {"sys", "torch"} <= _imported(body):
        return body
    check = (
        f'    if sys.argv[3:4] in ([], ["cuda"]) and torch.cuda.device_count() < {repro.minimum}:\n'
        f"        sys.exit({_quoted(need)})\n"
    )
    return body.replace(start, start + check)


def _imported(body: str) -> set[str]:
    """Return the modules that the script has by their plain names."""
    return {alias.name for node in ast.parse(body).body if isinstance(node, ast.Import) for alias in node.names}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def file_name(repro: Repro) -> Path:
    """Return what an exported script is called unless something else is asked for."""
    return Path(f"{repro.id.lower().replace('-', '_')}.py")
