"""The stack of an issue: the nearest one, with the releases that the issue states as far as an index has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from repros.engine.environment import Targets
from repros.engine.environments.extended import UnresolvedError, extend
from repros.model.stack import Stack
from repros.scripts.try_.task import Task

_NEEDS = {
    "lightning": ("torch", "torchmetrics"),
    "pytorch-lightning": ("torch", "torchmetrics"),
    "torchmetrics": ("torch",),
    "accelerate": ("torch",),
    "transformers": ("torch", "accelerate"),
    "peft": ("torch", "transformers", "accelerate"),
    "trl": ("torch", "transformers", "accelerate", "peft", "datasets"),
    "bitsandbytes": ("torch",),
    "datasets": ("pyarrow",),
}
"""Packages, and those of their dependencies whose release an issue about them is often about."""
_DECIDING = ("torch", "transformers", "lightning", "accelerate", "peft", "trl", "datasets", "bitsandbytes")
"""The packages by which the nearest stack is chosen, the most costly to replace first."""


@dataclass(frozen=True)
class ReportedStack:
    """The environment that comes nearest to an issue's."""

    stack: Stack
    """The nearest stack, with the releases of the issue."""
    notes: tuple[str, ...]
    """A sentence for each release of the issue that it does not have."""


def reported_targets(
    task: Task, where: Targets, wanted: Sequence[Requirement], report_progress: Callable[[str], None]
) -> Targets:
    """Return the default stacks, and for a task with an issue the issue's own; see :func:`find_reported_stack`."""
    if task.issue is None:
        return where
    found = find_reported_stack(task.issue.versions, task.needs.packages, where.known, report_progress, wanted)
    if found is None:
        report_progress("the issue states no release of a package that the stacks have")
        return where
    for note in found.notes:
        report_progress(f"not as in the issue: {note}")
    names = dict.fromkeys((found.stack.name, *where.stacks))
    return replace(where, stacks=tuple(names), known={**where.known, found.stack.name: found.stack})


def find_reported_stack(
    versions: Mapping[str, Sequence[str]],
    packages: Sequence[str],
    stacks: Mapping[str, Stack],
    report_progress: Callable[[str], None],
    extra: Sequence[Requirement] = (),
) -> ReportedStack | None:
    """Return the stack that comes nearest to an issue's environment; None if the issue states no release of use.

    Another patch release of torch is no reason for a download of its size: the stack's own stays, with a note.

    Args:
        versions: what the issue states, by package, the most trusted first.
        packages: canonical names of what the script needs.
        stacks: the stacks by name.
        report_progress: receives the changes to the stack.
        extra: requirements that take precedence over the issue's releases.

    Raises:
        ReprosError: the cache folder cannot be written.
    """
    given = {canonicalize_name(requirement.name) for requirement in extra}
    stated = {name: found for name, texts in versions.items() if (found := _parse(texts)) is not None}
    base = _nearest(stated, [stack for stack in stacks.values() if stack.pins])
    if base is None:
        return None
    own = {name: version for name, version in stated.items() if name not in given}
    wanted, notes = _requirements(own, packages, base)
    if (python := versions.get("python")) and not python[0].startswith(base.python):
        notes.append(f"Python {base.python} instead of {python[0]}")
    stack, problems = _extend(base, [*extra, *wanted], report_progress)
    return ReportedStack(stack, (*notes, *problems))


def _parse(texts: Sequence[str]) -> Version | None:
    """Return the public part of the first release that is one: no development version, which no index has."""
    for text in texts:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        return None if version.is_devrelease else Version(version.public)
    return None


def _nearest(stated: Mapping[str, Version], stacks: Sequence[Stack]) -> Stack | None:
    """Return the stack whose first deciding package has the nearest release; the later packages break ties."""
    deciding = [name for name in _DECIDING if name in stated]
    if not deciding or not stacks:
        return None
    return min(stacks, key=lambda stack: [_distance(stated[name], stack, name) for name in deciding])


def _distance(stated: Version, stack: Stack, name: str) -> float:
    pin = stack.pins.get(name)
    if pin is None:
        return float("inf")
    own = Version(pin.version)
    return abs((own.major - stated.major) * 10_000 + (own.minor - stated.minor) * 100 + own.micro - stated.micro)


def _requirements(
    stated: Mapping[str, Version], packages: Sequence[str], base: Stack
) -> tuple[list[Requirement], list[str]]:
    """Return the requirements that change a stack into an issue's environment, and notes on what stays."""
    names = dict.fromkeys([*packages, *(other for name in packages for other in _NEEDS.get(name, ()))])
    wanted, notes = [], []
    for name in names:
        version, pin = stated.get(name), base.pins.get(name)
        own = Version(Version(pin.version).public) if pin else None
        if version is None or own == version:
            continue
        if name == "torch" and own is not None and own.release[:2] == version.release[:2]:
            notes.append(f"torch {own} instead of {version} (--with torch=={version} replaces it)")
        else:
            wanted.append(Requirement(f"{name}=={version}"))
    return wanted, notes


def _extend(
    base: Stack, wanted: Sequence[Requirement], report_progress: Callable[[str], None]
) -> tuple[Stack, list[str]]:
    """Return a stack with as many of the requirements as work together, the first ones first, and why others do not."""
    if not wanted:
        return base, []
    try:
        return extend(base, wanted, report_progress), []
    except UnresolvedError as error:
        if len(wanted) == 1 or error.is_unreachable:
            return base, [f"{', '.join(map(str, wanted))} cannot be had: {error.reason}"]
    kept, problems = list[Requirement](), list[str]()
    for requirement in wanted:
        try:
            extend(base, [*kept, requirement], lambda _: None)
            kept.append(requirement)
        except UnresolvedError as error:
            problems.append(f"{requirement} cannot be had: {error.reason}")
    return (extend(base, kept, report_progress) if kept else base), problems
