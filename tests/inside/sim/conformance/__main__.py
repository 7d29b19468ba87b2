"""`python -m tests.inside.sim.conformance`: all operators in worker processes, then what was found.

Exit code 1 when something differs that `known.py` does not name, or when an entry of it names nothing that differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from .known import Known, of_version

_CHUNK = 12
"""Operators for one worker: few, so that the cost of one that crashes is small, and enough to pay for its imports."""


class Found(NamedTuple):
    """One combination of an operator, an element type and a form."""

    operator: str
    dtype: str
    form: str
    samples: int
    """Samples that the CPU passes."""
    wrong: int
    """Those among them that the device does not."""
    first: str
    """What differed first."""


def main() -> int:
    """Run, print, and say by the exit code whether all is as it is known to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes side by side")
    parser.add_argument("--operators", default="", help="only those whose name holds this text")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    version, names = _about()
    chunks = _chunks([index for index, name in enumerate(names) if given.operators in name])
    found = _run(chunks, given.jobs)
    known = of_version(version)
    unknown = [one for one in found if one.wrong and not _covered(one, known)]
    # A part of the operators says nothing of entries for the others.
    stale = [entry for entry in known if not given.operators and not _needed(entry, found)]
    figures = _figures(version, found, known)
    for one in unknown:
        print(f"{one.operator} {one.dtype} {one.form}: {one.wrong} of {one.samples} samples, {one.first}")
    for entry in stale:
        print(f"{entry.operator} passes everywhere now and has to leave known.py: {entry.reason}")
    print(_told(figures))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if unknown or stale else 0


def _about() -> tuple[str, list[str]]:
    """torch's version and the names of its operators, asked of a process of its own."""
    script = (
        "import json, warnings; warnings.simplefilter('ignore')\n"
        "import torch; from tests.inside.sim.conformance.samples import operators\n"
        "print(json.dumps([torch.__version__, [one.name for one in operators()]]))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    version, names = json.loads(done.stdout.splitlines()[-1])
    return version, names


def _chunks(indices: list[int]) -> list[tuple[int, int]]:
    """Ranges of operators, neighbours together."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index and index - ranges[-1][0] < _CHUNK:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return ranges


def _run(chunks: list[tuple[int, int]], jobs: int) -> list[Found]:
    """Run all ranges, several at a time."""
    left, results, lock = list(reversed(chunks)), {}, threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not left:
                    return
                chunk = left.pop()
            results[chunk] = _of_chunk(*chunk)

    threads = [threading.Thread(target=work) for _ in range(max(1, jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for chunk in chunks for one in results[chunk]]


def _of_chunk(begin: int, end: int) -> list[Found]:
    """Run one range; a combination that takes its worker down is wrong, and the next worker goes on behind it."""
    found: list[Found] = []
    after: list[str] = []
    while True:
        command = [sys.executable, "-m", "tests.inside.sim.conformance.worker", str(begin), str(end)]
        done = subprocess.run(
            [*command, *(["--after", *after] if after else [])], check=False, capture_output=True, text=True
        )
        begun: list[str] | None = None
        for line in map(json.loads, filter(lambda text: text.startswith("{"), done.stdout.splitlines())):
            begun = line.get("begin")
            if "end" in line:
                found.append(_found(line["end"], line["samples"], line["wrong"], *line["first"]))
        if begun is None and done.returncode:
            raise SystemExit(f"a worker for the operators {begin} to {end} failed to start:\n{done.stderr[-2000:]}")
        if begun is None:
            return found
        how = "hung" if "Timeout (" in done.stderr else f"took its process down ({done.returncode})"
        found.append(_found(begun, 1, 1, how))
        after = begun


def _found(combination: list[str], samples: int, wrong: int, first: str = "") -> Found:
    operator, variant, dtype, form = combination
    return Found(f"{operator}.{variant}" if variant else operator, dtype, form, samples, wrong, first)


def _covered(one: Found, known: list[Known]) -> bool:
    return any(entry.covers(one.operator, one.dtype, one.form) for entry in known)


def _needed(entry: Known, found: list[Found]) -> bool:
    return any(one.wrong and entry.covers(one.operator, one.dtype, one.form) for one in found)


def _figures(version: str, found: list[Found], known: list[Known]) -> dict[str, Any]:
    samples: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for one in found:
        key = f"{one.form} {one.dtype}"
        samples[key] += one.samples
        passed[key] += one.samples - one.wrong
    return {
        "torch": version,
        "operators": len({one.operator for one in found if one.samples}),
        "samples": {key: {"cpu": samples[key], "sim": passed[key]} for key in sorted(samples) if samples[key]},
        "known": {entry.operator: entry.reason for entry in known},
    }


def _told(figures: dict[str, Any]) -> str:
    lines = [f"torch {figures['torch']}: {figures['operators']} operators"]
    for key, of in figures["samples"].items():
        lines.append(f"  {key:<20} {of['sim']:>6} of {of['cpu']:>6} samples that the CPU passes")
    lines.append(f"  {len(figures['known'])} reasoned exceptions")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
