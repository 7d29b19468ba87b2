"""The newest releases as a stack: those on the package index of each package in a stack."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.environments.outdated import without_pin
from repros.engine.environments.releases import candidate_releases, fetch_files
from repros.engine.environments.resolve import resolve_lock
from repros.engine.environments.uv import UvError
from repros.engine.stacks.write import write_stack
from repros.model.errors import ReprosError
from repros.model.stack import Stack

PACKAGES = ("torch", "lightning", "accelerate", "transformers", "peft", "bitsandbytes")
"""Packages of every new stack; others only if the newest stack has them."""


def plan_newest(name: str, base: Stack, folder: Path, until: dt.date) -> Stack | None:
    """Return the newest releases as a stack without a lock; None if none is newer than in the base stack.

    Exclusions next to a pin of the base stack (`torch==2.15.0,<2.16`) and its requirements without a pin (`numpy<2`)
    apply to the new stack as well.

    Args:
        name: the name of the new stack.
        base: the stack to compare with, whose Python is used.
        folder: the folder of the new stack.
        until: the last release date; it must be in the past, or the resolution is not repeatable.

    Raises:
        ReprosError: the index does not answer, or gives no dates.
    """
    pinned = {str(canonicalize_name(wanted.name)): wanted for wanted in base.requirements if _is_pin(wanted)}
    newest = {package: _newest(package, base, until) for package in dict.fromkeys((*pinned, *PACKAGES))}
    versions = {package: version for package, version in newest.items() if version is not None}
    if not any(_is_newer(version, base, package) for package, version in versions.items()):
        return None
    pins = [_pin(package, version, pinned.get(package)) for package, version in versions.items()]
    others = [wanted for wanted in base.requirements if not _is_pin(wanted)]
    about = f"the newest releases of {until}, with torch {versions['torch']}" if "torch" in versions else "the newest"
    lock = folder / f"{name}.lock.txt"
    return replace(
        base, name=name, about=about, requirements=(*pins, *others), until=until, lock=lock, cuda=None, cpu=None
    )


def lock_newest(wanted: Stack, base: Stack) -> Path:
    """Resolve a planned stack, write its lock and its TOML file, and return the path of the latter; both or none.

    Raises:
        ReprosError: the releases conflict, the index does not answer, or the folder is read-only.
    """
    try:
        text = resolve_lock(wanted)
    except UvError as error:
        if "No solution found" not in str(error):
            raise
        location = f"next to its pin in {base.name}.toml"
        remedy = f'exclude a release that does not work with the others {location}: "torch==2.15.0,<2.16"'
        raise ReprosError(f"no lock for {wanted.name}: {error}; {remedy}.") from error
    return write_stack(wanted, text)


def describe_newest(wanted: Stack, base: Stack) -> Iterator[str]:
    """Yield a sentence for each pin that differs from the base stack, and one for the others."""
    unchanged = []
    for wanted_pin in filter(_is_pin, wanted.requirements):
        package, version = wanted_pin.name, _version(wanted_pin)
        known = base.pins.get(canonicalize_name(package))
        if known is None:
            yield f"{package} {version} is new; {base.name} has none"
        elif Version(known.version) != version:
            yield f"{package} {version} is new; {base.name} has {known.version}"
        else:
            unchanged.append(f"{package} {version}")
    if unchanged:
        yield f"as in {base.name}: {', '.join(unchanged)}"


def _newest(package: str, base: Stack, until: dt.date) -> Version | None:
    """Return the newest release up to a date; None if the index has none for this Python."""
    bounds = [without_pin(wanted) for wanted in base.requirements]
    releases = candidate_releases(package, fetch_files(package), base.python, bounds)
    return max((release.version for release in releases if release.date <= until), default=None)


def _is_newer(version: Version, base: Stack, package: str) -> bool:
    pins: Mapping[str, object] = base.pins
    return package not in pins or version > Version(base.pins[package].version)


def _is_pin(wanted: Requirement) -> bool:
    return any(part.operator in {"==", "==="} for part in wanted.specifier)


def _version(wanted: Requirement) -> Version:
    return Version(next(part.version for part in wanted.specifier if part.operator in {"==", "==="}))


def _pin(package: str, version: Version, known: Requirement | None) -> Requirement:
    """Return the requirement of one release, with the bounds next to the pin of the base stack."""
    bounds = without_pin(known).specifier if known is not None else ""
    return Requirement(f"{package}=={version}{',' if str(bounds) else ''}{bounds}")
