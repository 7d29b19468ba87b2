"""Releases that cannot be imported on a stack: seen by one import before any cell runs, and remembered for all repros.

A release is often older or newer than what surrounds it: an early Lightning does not import beside a late setuptools.
A run would find that out twice, and so would every other repro.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.engine.own_folder import make_folder
from repros.engine.signature import normalise
from repros.model import Signature, Stack

_SECONDS = 300
_LONGEST = 300
_IMPORT = """\
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        print(f"\\n{name}\\n{type(error).__name__}: {error}")
        break
"""


@dataclass(frozen=True)
class ImportFailure:
    """A module that cannot be imported, and why."""

    module: str
    why: str
    """`ImportError: cannot import name ...`, on one line."""


def imported_modules(script: Path) -> list[str]:
    """Return the modules outside the standard library that a script imports at its top level, in their order."""
    names: list[str] = []
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return [name for name in dict.fromkeys(names) if name.partition(".")[0] not in sys.stdlib_module_names]


def try_imports(python: Path, modules: Sequence[str]) -> ImportFailure | None:
    """Import modules with an interpreter, in a process of its own; return the first that fails."""
    command = [str(python), "-c", _IMPORT, *modules]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False, cwd=python.parent
        )
    except subprocess.TimeoutExpired:
        return ImportFailure(modules[0], f"no answer within {_SECONDS} s")
    if done.returncode < 0:
        return ImportFailure(modules[0], f"the interpreter ended by signal {-done.returncode}")
    # Without the names of this machine's folders, because answers are kept as evidence.
    printed = done.stdout.replace(str(python.parents[1]), "ENVIRONMENT")
    module, _, why = printed.strip().rpartition("\n" * 2)[2].partition("\n")
    return ImportFailure(module, " ".join(why.split())[:_LONGEST]) if module in modules and why else None


def is_documented(failure: ImportFailure, signature: Signature) -> bool:
    """Return whether a failed import is the documented failure itself, which then has to be run."""
    return any(normalise(text) in normalise(failure.why) for text in signature.match)


class ImportMemory:
    """The releases that could not be imported, by stack and module, in a file that all bisections share."""

    def __init__(self, file: Path, stack: Stack) -> None:
        """Read what earlier bisections found on this stack."""
        self._file = file
        pins = sorted(map(str, stack.pins.values()))
        self._stack = hashlib.sha256("\n".join([stack.python, *pins]).encode()).hexdigest()[:16]
        self._known = dict(self._read())

    def find(self, release: str, modules: Sequence[str]) -> ImportFailure | None:
        """Return what is known to fail on importing these modules with a release (`lightning==2.0.1`)."""
        known = (ImportFailure(name, why) for name in modules if (why := self._known.get((release, name))))
        return next(known, None)

    def keep(self, release: str, failure: ImportFailure) -> None:
        """Remember a failure."""
        self._known[release, failure.module] = failure.why
        make_folder(self._file.parent)
        line = {"stack": self._stack, "release": release, "module": failure.module, "why": failure.why}
        with self._file.open("a", encoding="utf-8") as opened:
            # A line of its own, even after a line that an interrupt left incomplete.
            opened.write("\n" + json.dumps(line))

    def _read(self) -> Iterator[tuple[tuple[str, str], str]]:
        for line in self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else ():
            try:
                found = json.loads(line)
                if found["stack"] == self._stack:
                    yield (str(found["release"]), str(found["module"])), str(found["why"])
            except (ValueError, KeyError, TypeError):
                continue
