"""Releases that cannot be imported on a stack: detected by one import before any run, and cached for all repros.

A release is often older or newer than the packages of the stack: an early Lightning does not import with a late
setuptools. Without the import every run would fail, of this repro and of every other.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repros.diagnose.issue.source import imports_of
from repros.engine.environments.processes import Processes
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
    note: str = ""
    """The dependencies of the attempt, and whether the failure is from the cache."""
    lasting: bool = True
    """Whether another try would end alike; not if the machine may be to blame."""

    def __str__(self) -> str:
        """Return a sentence."""
        return f"import {self.module} fails: {self.why}{f' ({self.note})' if self.note else ''}"


def imported_modules(script: Path) -> list[str]:
    """Return the modules outside the standard library that a script imports at its top level, in order."""
    names = imports_of(script.read_text(encoding="utf-8"))
    return [name for name in names if name.partition(".")[0] not in sys.stdlib_module_names]


def try_imports(python: Path, modules: Sequence[str], processes: Processes) -> ImportFailure | None:
    """Import modules with an interpreter, in a process of its own; return the first that fails.

    Their bytecode is written, which makes the runs start faster.

    Raises:
        CancelledError: the bisection has ended.
    """
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [str(python), "-c", _IMPORT, *modules]
    try:
        code, printed = processes.run(command, seconds=_SECONDS, cwd=python.parent, env=environ)
    except subprocess.TimeoutExpired:
        return ImportFailure(modules[0], f"no answer within {_SECONDS} s", lasting=False)
    if code < 0:
        # SIGKILL comes from outside, such as where memory is short.
        lasting = code != -signal.SIGKILL
        return ImportFailure(modules[0], f"the interpreter ended by signal {-code}", lasting=lasting)
    # Without the names of this machine's folders, since answers are recorded as evidence.
    printed = printed.replace(str(python.parents[1]), "ENVIRONMENT")
    module, _, why = printed.strip().rpartition("\n" * 2)[2].partition("\n")
    return ImportFailure(module, " ".join(why.split())[:_LONGEST]) if module in modules and why else None


def is_documented(failure: ImportFailure, signature: Signature) -> bool:
    """Return whether a failed import shows the documented failure itself, which then has to be run."""
    return any(normalise(text) in normalise(failure.why) for text in signature.match)


class ImportMemory:
    """The releases that could not be imported, by stack and module, in a file that all bisections share."""

    def __init__(self, file: Path, stack: Stack) -> None:
        """Read the failures of earlier bisections on this stack."""
        self.file = file
        pins = sorted(map(str, stack.pins.values()))
        self._stack = hashlib.sha256("\n".join([stack.python, *pins]).encode()).hexdigest()[:16]
        self._known = dict(self._read())
        self._lock = threading.Lock()

    def find(self, release: str, modules: Sequence[str], as_of: dt.date | None = None) -> ImportFailure | None:
        """Return a known failure of one of the modules; None if there is none.

        Args:
            release: `lightning==2.0.1`.
            modules: the modules to import.
            as_of: the day whose dependencies are installed; None for those of the stack.
        """
        day = str(as_of or "")
        return next((known for name in modules if (known := self._known.get((release, name, day)))), None)

    def keep(self, release: str, failure: ImportFailure, as_of: dt.date | None = None) -> None:
        """Record a failure, unless another attempt may end otherwise."""
        if not failure.lasting:
            return
        key = {"release": release, "module": failure.module, "as_of": str(as_of or "")}
        line = {"stack": self._stack, **key, "why": failure.why, "note": failure.note}
        with self._lock:
            self._known[release, failure.module, key["as_of"]] = _remember(failure.module, failure.why, failure.note)
            make_folder(self.file.parent)
            with self.file.open("a", encoding="utf-8") as opened:
                # A line of its own, even after a line that an interrupt left incomplete.
                opened.write("\n" + json.dumps(line))

    def _read(self) -> Iterator[tuple[tuple[str, str, str], ImportFailure]]:
        for line in self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else ():
            try:
                record = json.loads(line)
                key, failure = _parse(record)
                if record["stack"] == self._stack:
                    yield key, failure
            except (ValueError, KeyError, TypeError):
                continue


def _parse(record: Mapping[str, Any]) -> tuple[tuple[str, str, str], ImportFailure]:
    release, module, as_of = (str(record[key]) for key in ("release", "module", "as_of"))
    return (release, module, as_of), _remember(module, str(record["why"]), str(record["note"]))


def _remember(module: str, why: str, note: str) -> ImportFailure:
    return ImportFailure(module, why, f"{note}; remembered" if note else "remembered")
