"""The environments named by `--stack` and `--python`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click
from packaging.requirements import InvalidRequirement, Requirement

from repros.cli.shared.inputs import choose_interpreter
from repros.cli.shared.options import F
from repros.engine.environment import Targets
from repros.engine.environments.extended import extend
from repros.engine.environments.uv import ReportProgress
from repros.engine.plan import HOME
from repros.engine.stacks import load_stacks, pick
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations


def choose_where(
    stacks: tuple[str, ...],
    python: Path | None,
    places: CatalogueLocations,
    default: tuple[str, ...] = (HOME, "current"),
) -> Targets:
    """Return where to run, from the values of `--stack` and `--python`; on the default stacks if neither is given.

    Raises:
        click.UsageError: both are given.
    """
    if python is None:
        return Targets(stacks or default, known=load_stacks(places))
    if stacks:
        raise click.UsageError("--stack and --python exclude each other: a stack brings its own interpreter.")
    return Targets(python=choose_interpreter(python))


def _read_requirements(_: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    return tuple(_read_requirement(option.opts[0], text) for text in texts)


def _read_requirement(option: str, text: str) -> Requirement:
    expected = "expected one such as torchmetrics==1.0.3"
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        raise ReprosError(
            f"{option} {text!r} is not a requirement ({str(error).splitlines()[0]}); {expected}."
        ) from error
    if found.url is not None:
        raise ReprosError(f"{option} {text!r} is an address, not a release; {expected}.")
    return found


def requirement_option(name: str, parameter: str, about: str) -> Callable[[F], F]:
    """Return the decorator that adds a repeatable option, whose requirements :func:`extend_stacks` takes."""
    return click.option(name, parameter, multiple=True, metavar="REQUIREMENT", callback=_read_requirements, help=about)


with_option = requirement_option(
    "--with",
    "wanted",
    "Replace or add this package on each stack, such as peft==0.13.0, in a cached environment; repeatable.",
)
"""Add `--with`."""


def extend_stacks(where: Targets, wanted: Sequence[Requirement], report_progress: ReportProgress) -> Targets:
    """Return where to run if packages are replaced or added on each stack; nothing is installed yet.

    Raises:
        UnknownNameError: an unknown stack.
        UnresolvedError: the packages do not work with a stack, or no index answers.
    """
    if not wanted:
        return where
    stacks = [extend(pick(where.known, name), wanted, report_progress) for name in where.stacks]
    known = {**where.known, **{stack.name: stack for stack in stacks}}
    return replace(where, stacks=tuple(stack.name for stack in stacks), known=known)
