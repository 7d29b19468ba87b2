"""A stack with packages replaced or added, as `uv run --with` does it: resolved once, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.engine.environments.compile import compile_requirements, exchange, own_folder, released_together
from repros.engine.environments.resolve import BUILDS_OF_THEIR_OWN, portable
from repros.engine.environments.store import ready, short_name
from repros.engine.environments.uv import ReportProgress, UvError
from repros.model.cache import VARIABLE, cache_folder
from repros.model.errors import ReprosError
from repros.model.stack import Pin, Stack

_NO_OPTION = "--exclude-newer-package"
"""In the error of a uv that does not know the option, or not for a package without a limit."""
_LONGEST = 300
"""Characters of uv's reason."""
_NO_INDEX = re.compile(r"Failed to fetch|error sending request|Request failed|Could not connect|timed out|dns error")


class UnresolvedError(ReprosError):
    """Requirements that do not work with a stack, or that nobody could be asked for."""

    def __init__(self, extended: ExtendedStack, error: UvError) -> None:
        """Compose the message, with uv's reason in short."""
        reason = _shorten(str(error))
        if _NO_INDEX.search(str(error)) and not error.is_without_solution:
            problem = f"the package index cannot be reached ({reason})"
            way_out = "name one with UV_DEFAULT_INDEX or PIP_INDEX_URL"
        else:
            problem, way_out = reason, "name another release, or replace what does not fit with a further --with"
        super().__init__(f"{extended.name} cannot be resolved: {problem}; {way_out}.")


@dataclass(frozen=True)
class VersionChange:
    """A distribution of which a stack and its extension have different releases."""

    name: str
    """Canonical name."""
    version: str | None
    """The extension's; None if it has none."""
    before: str | None
    """The stack's own; None if it has none."""

    def __str__(self) -> str:
        """Return it in words: `torchmetrics 1.0.3 instead of 1.2.0`."""
        if self.version is None:
            return f"no {self.name}"
        return f"{self.name} {self.version} {f'instead of {self.before}' if self.before else 'added'}"


@dataclass(frozen=True, kw_only=True)
class ExtendedStack(Stack):
    """A stack with packages replaced or added; its lock lies in the cache folder."""

    base: Stack
    wanted: tuple[Requirement, ...]
    """What is replaced or added."""

    @property
    def changes(self) -> tuple[VersionChange, ...]:
        """How it differs from its base, first in what was asked for."""
        own, before = _versions(self.pins), _versions(self.base.pins)
        names = dict.fromkeys((*(canonicalize_name(each.name) for each in self.wanted), *sorted({*own, *before})))
        found = (VersionChange(name, own.get(name), before.get(name)) for name in names)
        return tuple(change for change in found if change.version != change.before)


def extend(stack: Stack, wanted: Iterable[Requirement], report_progress: ReportProgress) -> Stack:
    """Return a stack with packages replaced or added; the stack itself if it has them already.

    What is resolved is kept, so that the next time needs no index. Nothing is installed.

    Args:
        stack: the stack.
        wanted: the packages: any release, or those of a range, of which the stack's own stays if it is one of them.
        report_progress: receives what it has instead of the stack's versions, unless its environment is there already.

    Raises:
        UnresolvedError: they do not work with the stack, or no index answers.
        ReprosError: the cache folder cannot be written.
    """
    extended = _describe(stack, tuple(wanted))
    if not extended.lock.exists():
        _write(extended.lock, _resolve(extended))
    if not extended.changes:
        report_progress(f"{stack.name} has {', '.join(str(each) for each in extended.wanted)} already")
        return stack
    if not ready(extended):
        report_progress(f"{extended.name} is to be made: {', '.join(map(str, extended.changes))}")
    return extended


def _describe(stack: Stack, wanted: tuple[Requirement, ...]) -> ExtendedStack:
    name = f"{stack.name} with {', '.join(map(str, wanted))}"
    deciding = (stack.python, stack.until, *stack.requirements, *stack.pins.values(), "with", *sorted(map(str, wanted)))
    digest = hashlib.sha256("\n".join(map(str, deciding)).encode()).hexdigest()[:12]
    own = {field.name: getattr(stack, field.name) for field in fields(Stack)}
    own |= {
        "name": name,
        "about": f"made by --with from stack {stack.name}",
        "requirements": tuple(exchange(stack.requirements, wanted)),
        "lock": cache_folder() / "locks" / f"{short_name(name)}-{digest}.lock.txt",
    }
    if ready(stack) and "torch" not in {canonicalize_name(each.name) for each in wanted}:
        own |= {"cuda": None, "cpu": None}  # uv has all but the new packages in its cache
    return ExtendedStack(**own, base=stack, wanted=wanted)


def _resolve(extended: ExtendedStack) -> str:
    """Return the text of the lock.

    The stack's versions are kept if that is possible at all; if not, where they fit. What the stack does not have is no
    newer than the stack, unless nothing fits then, or the index knows no days.
    """
    base = extended.base
    free = {name for each in extended.wanted for name in (canonicalize_name(each.name), *released_together(each.name))}
    kept = [pin for pin in base.pins.values() if pin.name not in free]
    until = ["--exclude-newer", f"{base.until}T23:59:59Z"]
    for pins, dated in product((kept, ()), (True, False)):
        # What is kept has its version whatever its day, which an index may not know.
        limits = [*until, *(f"--exclude-newer-package={pin.name}=false" for pin in pins)] if dated else []
        try:
            with own_folder() as folder:
                lines = compile_requirements(
                    folder,
                    extended.requirements,
                    *("--python-version", base.python, *limits),
                    preferred=base.pins.values(),
                    kept=pins,
                )
            break
        except UvError as error:
            problem = error
            if not error.is_without_solution and _NO_OPTION not in str(error):
                raise UnresolvedError(extended, error) from error
    else:
        raise UnresolvedError(extended, problem) from problem
    head = f"# Stack {base.name} on Python {base.python} with {', '.join(map(str, extended.wanted))}.\n"
    return head + "".join(f"{line}\n" for line in _lock_lines(extended, lines))


def _lock_lines(extended: ExtendedStack, resolved: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the lock: with the hashes of the stack's own, and for each build of torch, as in the stack."""
    base = extended.base
    own = {line.split()[0]: line for line in base.lock.read_text(encoding="utf-8").splitlines() if line.strip()}
    builds = {canonicalize_name(each.name) for each in extended.wanted if "+" in str(each.specifier)}
    for line in portable(resolved):
        pin, _, via = line.partition(" ")
        name = pin.partition("==")[0]
        if name in BUILDS_OF_THEIR_OWN and name not in builds:
            pin = pin.partition("+")[0]
        yield own.get(pin, f"{pin:<36}{via.strip()}")


def _write(file: Path, text: str) -> None:
    """Write a file, whole or not at all, whatever other processes write it.

    Raises:
        ReprosError: the folder cannot be written.
    """
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        way_out = f"name another folder with {VARIABLE}"
        raise ReprosError(f"{file} cannot be written ({error.strerror}); {way_out}.") from error


def _versions(pins: Mapping[str, Pin]) -> dict[str, str]:
    return {name: pin.version for name, pin in pins.items()}


def _shorten(words: str) -> str:
    """Return uv's reason in short: of a contradiction the first step, of another error its first and its last cause."""
    _, because, why = words.partition("Because ")
    if because:
        why = re.sub(r"(, we can conclude that .*|\s*hint: .*)", "", why)
    else:
        first, *causes = words.removeprefix("uv pip compile: ").split(" cause: ")
        why = ": ".join([first, *causes[-1:]])
    why = why.rstrip(" .")
    return why if len(why) <= _LONGEST else f"{why[:_LONGEST]} [...]"
