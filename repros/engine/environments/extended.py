"""Stacks with packages replaced or added, as in `uv run --with`: resolved once, and cached."""

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

from repros.engine.environments.builds import BACKEND, BUILDS_OF_THEIR_OWN
from repros.engine.environments.compile import compile_requirements, exchange, released_together, uv_folder
from repros.engine.environments.resolve import portable
from repros.engine.environments.store import ready, short_name
from repros.engine.environments.uv import ReportProgress, UvError
from repros.model.cache import VARIABLE, cache_folder
from repros.model.errors import ReprosError
from repros.model.stack import Pin, Stack

_NO_OPTION = "--exclude-newer-package"
"""Part of the error of a uv that does not know the option, or not with the value `false`."""
_LONGEST = 300
"""Maximum characters of uv's reason."""
_NO_INDEX = re.compile(r"Failed to fetch|error sending request|Request failed|Could not connect|timed out|dns error")

_TORCH_INDEX = "download.pytorch.org"


class UnresolvedError(ReprosError):
    """Requirements that conflict with a stack, or whose index cannot be reached."""

    def __init__(self, extended: ExtendedStack, error: UvError) -> None:
        reason = _shorten(str(error))
        self.is_unreachable = bool(_NO_INDEX.search(str(error))) and not error.is_without_solution
        """Whether no index answers, so that other requirements would fail alike."""
        if self.is_unreachable and (backend := os.environ.get(BACKEND)) and _TORCH_INDEX in str(error):
            self.reason = f"PyTorch's own index, which {BACKEND}={backend} names, cannot be reached ({reason})"
            remedy = "unset the variable, and torch comes from the package index"
        elif self.is_unreachable:
            self.reason = f"the package index cannot be reached ({reason})"
            remedy = "name one with UV_DEFAULT_INDEX or PIP_INDEX_URL"
        else:
            self.reason, remedy = reason, "name another release, or replace what does not fit with a further --with"
        super().__init__(f"{extended.name} cannot be resolved: {self.reason}; {remedy}.")


@dataclass(frozen=True)
class VersionChange:
    """A distribution with different releases in a stack and its extension."""

    name: str
    """Canonical name."""
    version: str | None
    """Release in the extension; None if absent."""
    before: str | None
    """Release in the stack; None if absent."""

    def __str__(self) -> str:
        """Return `torchmetrics 1.0.3 instead of 1.2.0`."""
        if self.version is None:
            return f"no {self.name}"
        return f"{self.name} {self.version} {f'instead of {self.before}' if self.before else 'added'}"


@dataclass(frozen=True, kw_only=True)
class ExtendedStack(Stack):
    """A stack with packages replaced or added; its lock is in the cache folder."""

    base: Stack
    wanted: tuple[Requirement, ...]
    """The replaced or added packages."""

    @property
    def changes(self) -> tuple[VersionChange, ...]:
        """The differences from the base stack, requested ones first."""
        own, before = _versions(self.pins), _versions(self.base.pins)
        names = dict.fromkeys(
            (*(canonicalize_name(requirement.name) for requirement in self.wanted), *sorted({*own, *before}))
        )
        changes = (VersionChange(name, own.get(name), before.get(name)) for name in names)
        return tuple(change for change in changes if change.version != change.before)


def extend(stack: Stack, wanted: Iterable[Requirement], report_progress: ReportProgress) -> Stack:
    """Return a stack with packages replaced or added, or the stack itself if it meets the requirements.

    The resolution is cached, so the next time needs no index. Nothing is installed.

    Args:
        stack: the base stack.
        wanted: the requirements; the stack's own release is preferred.
        report_progress: receives the differences from the stack, unless the environment exists already.

    Raises:
        UnresolvedError: the requirements conflict with the stack, or no index answers.
        ReprosError: the cache folder cannot be written.
    """
    extended = _describe(stack, tuple(wanted))
    if not extended.lock.exists():
        _write(extended.lock, _resolve(extended))
    if not extended.changes:
        report_progress(f"{stack.name} has {', '.join(str(requirement) for requirement in extended.wanted)} already")
        return stack
    if not ready(extended):
        report_progress(f"{extended.name} is to be made: {', '.join(map(str, extended.changes))}")
    return extended


def _describe(stack: Stack, wanted: tuple[Requirement, ...]) -> ExtendedStack:
    name = f"{stack.name} with {', '.join(map(str, wanted))}"
    key = (stack.python, stack.until, *stack.requirements, *stack.pins.values(), "with", *sorted(map(str, wanted)))
    digest = hashlib.sha256("\n".join(map(str, key)).encode()).hexdigest()[:12]
    own = {field.name: getattr(stack, field.name) for field in fields(Stack)}
    own |= {
        "name": name,
        "about": f"made by --with from stack {stack.name}",
        "requirements": tuple(exchange(stack.requirements, wanted)),
        "lock": cache_folder() / "locks" / f"{short_name(name)}-{digest}.lock.txt",
    }
    if ready(stack) and "torch" not in {canonicalize_name(requirement.name) for requirement in wanted}:
        own |= {"cuda": None, "cpu": None}  # uv has cached all packages except the new ones
    return ExtendedStack(**own, base=stack, wanted=wanted)


def _resolve(extended: ExtendedStack) -> str:
    """Return the text of the lock.

    Up to four resolutions are tried: with all versions of the stack forced, then preferred; each first with releases
    up to the stack's date only, then without a limit, since an index may have no dates.
    """
    base = extended.base
    free = {
        name
        for requirement in extended.wanted
        for name in (canonicalize_name(requirement.name), *released_together(requirement.name))
    }
    pins_to_keep = [pin for pin in base.pins.values() if pin.name not in free]
    until = ["--exclude-newer", f"{base.until}T23:59:59Z"]
    for pins, dated in product((pins_to_keep, ()), (True, False)):
        # Forced pins are exempt from the limit: an index may not know their dates.
        limits = [*until, *(f"--exclude-newer-package={pin.name}=false" for pin in pins)] if dated else []
        try:
            with uv_folder() as folder:
                lines = compile_requirements(
                    folder,
                    extended.requirements,
                    *("--python-version", base.python, *limits),
                    preferred=base.pins.values(),
                    forced=pins,
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
    """Yield the lines of the lock: with the hashes of the stack's lock, and without local builds of torch, as there."""
    base = extended.base
    own = {line.split()[0]: line for line in base.lock.read_text(encoding="utf-8").splitlines() if line.strip()}
    builds = {
        canonicalize_name(requirement.name) for requirement in extended.wanted if "+" in str(requirement.specifier)
    }
    for line in portable(resolved):
        pin, _, via = line.partition(" ")
        name = pin.partition("==")[0]
        if name in BUILDS_OF_THEIR_OWN and name not in builds:
            pin = pin.partition("+")[0]
        yield own.get(pin, f"{pin:<36}{via.strip()}")


def _write(file: Path, text: str) -> None:
    """Write a file atomically.

    Raises:
        ReprosError: the folder cannot be written.
    """
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        remedy = f"name another folder with {VARIABLE}"
        raise ReprosError(f"{file} cannot be written ({error.strerror}); {remedy}.") from error


def _versions(pins: Mapping[str, Pin]) -> dict[str, str]:
    return {name: pin.version for name, pin in pins.items()}


def _shorten(message: str) -> str:
    """Return a summary of uv's error: the first step of a conflict, or the first and last cause of another error."""
    _, because, why = message.partition("Because ")
    if because:
        why = re.sub(r"(, we can conclude that .*|\s*hint: .*)", "", why)
    else:
        first, *causes = message.removeprefix("uv pip compile: ").split(" cause: ")
        why = ": ".join([first, *causes[-1:]])
    why = why.rstrip(" .")
    return why if len(why) <= _LONGEST else f"{why[:_LONGEST]} [...]"
