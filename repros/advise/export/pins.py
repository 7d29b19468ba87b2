"""The versions that an exported script requires: those of a stack, of an environment or of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from repros.model import Environment, Repro
from repros.model.errors import ReprosError
from repros.model.stack import Stack


class ExportError(ReprosError):
    """A script that cannot be exported."""


@dataclass(frozen=True)
class Pins:
    """The versions that an exported script requires."""

    source: str
    """Their origin, as the end of a sentence: `stack 2023-12, on which it was measured`."""
    python: str
    """`3.11`."""
    direct: tuple[str, ...]
    """Requirements for the script's own dependencies."""
    transitive: tuple[str, ...] = ()
    """Requirements for their dependencies; pinned, because newer releases may be incompatible."""


def pins_of_stack(repro: Repro, stack: Stack, *, measured: bool = False) -> Pins:
    """Return the stack's versions of the script's dependencies, direct and transitive.

    The lock names, for each distribution, the distributions that need it. It does not contain torch's CUDA packages,
    because torch pins them itself.

    Args:
        repro: the repro.
        stack: the stack.
        measured: whether there is evidence of the repro on this stack; the script's comment then states it.

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
        source="the versions of its run",
        python=".".join(python.split(".")[:2]),
        direct=(*(f"{name}=={_public_version(version)}" for name, version in known.items()), *rest),
    )


def _direct_dependencies(repro: Repro) -> list[str]:
    return list(dict.fromkeys(canonicalize_name(spec.name) for spec in repro.dependencies))


def _public_version(version: str) -> str:
    """Return a version without its local part, because the default index does not have `2.13.0+cpu`."""
    return version.partition("+")[0]
