"""Results as JSON Lines: one object per cell, appended as they come, so that a killed runner loses none.

The lines carry what a reader of evidence needs and nothing else of the machine: no environment variables.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from repros.model import Result, Verdict

SCHEMA = 1
"""Raised whenever a field changes its meaning; new fields do not raise it."""

_ALWAYS = {"repro", "variant", "strategy", "device", "stack", "verdict", "reason", "seconds", "logs"}
_VERDICTS = set(Verdict)


def line(result: Result) -> dict[str, Any]:
    """Return a result as the object that stands in the file."""
    cell, seen = result.cell, result.observation
    expectation = cell.expectation
    return {
        "schema": SCHEMA,
        "repro": cell.repro.id,
        "title": cell.repro.title,
        "variant": cell.variant.name,
        "claim": cell.variant.claim,
        "strategy": cell.strategy,
        "device": cell.device.value,
        "stack": {
            "name": cell.environment.name,
            "python": cell.environment.python_version,
            "versions": _telling_versions(result),
        },
        "platform": platform.platform(),
        "processes": cell.processes,
        "expected": {
            "outcome": expectation.outcome.value,
            "affected": expectation.affected,
            "signature": str(expectation.signature),
        },
        "launch": seen.launch if seen else None,
        "observed": [
            {
                "process": process.name,
                "ending": process.ending.value,
                "code": process.code,
                "signal": process.signal,
            }
            for process in (seen.ranks if seen else ())
        ],
        "signature": result.signature,
        "verdict": result.verdict.value,
        "repeats": {"n": result.repeats.n, "agreeing": result.repeats.agreeing} if result.repeats else None,
        "reason": result.reason,
        "seconds": round(seen.seconds, 2) if seen else None,
        "logs": str(seen.folder) if seen else None,
    }


def _telling_versions(result: Result) -> Mapping[str, str]:
    """Return the installed versions of what the script imports and of what its ranges speak of."""
    repro, variant = result.cell.repro, result.cell.variant
    ranges = (*repro.dependencies, *variant.affected, *variant.requires)
    names = sorted({"torch", *(canonicalize_name(r.name) for r in ranges), *map(canonicalize_name, repro.packages)})
    installed = result.cell.environment.versions
    return {name: installed[name] for name in names if name in installed}


def append(path: Path, result: Result) -> None:
    """Append one result; whole, even when several runners append to the same file.

    A line that a killed runner left half written is ended first, so that it spoils only itself.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(line(result), ensure_ascii=False) + "\n"
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end and _last_byte(file.fileno(), end) != b"\n":
            text = "\n" + text
        # A lone surrogate, from undecodable bytes in a message, becomes the escape that JSON has for it.
        try:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # A full disk takes half a line; without it there is room for what somebody else appends.
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), end)
            raise


def _last_byte(descriptor: int, end: int) -> bytes:
    return os.pread(descriptor, 1, end - 1)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every whole line of a results file that this version understands; pass over damaged ones."""
    with path.open("rb") as file:
        for raw in file:
            try:
                found = json.loads(raw)
            except ValueError:
                continue
            known = isinstance(found, dict) and found.get("schema") == SCHEMA and found.keys() >= _ALWAYS
            if known and found["verdict"] in _VERDICTS:
                yield found
