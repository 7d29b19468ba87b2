"""`python -m tests.inside.sim.libraries LIBRARY CHECKOUT`: runs a library's own tests on sim, where the library is.

Each file is run in a process of its own, with sim. What fails is run once more without sim, with nothing exchanged:
what fails there as well says nothing of sim. pytest, pytest-timeout and what the tests import must be there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.inside.sim.libraries import plugin
from tests.inside.sim.libraries.exchange import LIBRARIES, Library, exchanged

ROOT = Path(__file__).parents[4]


def main() -> None:
    """Run them and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", nargs="*", default=[""], help="only those files whose path holds one of these texts")
    parser.add_argument("--deadline", type=int, default=900, help="seconds for one file")
    parser.add_argument("--out", type=Path, help="a file for one line of JSON for each test")
    given = parser.parse_args()
    library = LIBRARIES[given.library]
    tests: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for file in exchanged(library, given.checkout.absolute(), Path(folder)):
            if any(text in str(file.relative_to(folder)) for text in given.files):
                tests += _of_file(library, Path(folder), given.checkout.absolute(), file, given.deadline)
                print(f"{file.relative_to(folder)}: {dict(_counted(tests))}", file=sys.stderr, flush=True)
    if given.out:
        given.out.write_text("".join(json.dumps(test) + "\n" for test in tests))
    print(told(given.library, tests))


def _of_file(library: Library, folder: Path, checkout: Path, file: Path, deadline: int) -> Iterable[dict[str, Any]]:
    tests = _run(library, folder, [str(file)], deadline, bare=False)
    failed = {test["test"]: test for test in tests if test["outcome"] == "failed"}
    if failed:
        theirs = checkout / file.relative_to(folder)
        again = _run(library, checkout, [str(theirs)], deadline, bare=True)
        broken = {test["test"] for test in again if test["outcome"] == "failed"}
        names = broken | {name.replace("cuda", "sim") for name in broken}
        for name, test in failed.items():
            test["bare_fails"] = name in names
    return tests


def _run(library: Library, folder: Path, tests: Sequence[str], deadline: int, *, bare: bool) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as report:
        environment = {**os.environ, **({} if bare else library.settings), plugin.REPORT: report.name}
        environment.update({plugin.BARE: "1"} if bare else {"REPROS_SIM": "1"})
        # For what the tests start in their turn: the commands of the environment, and sim as soon as torch is there.
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        places = [] if bare else [str(ROOT / "repros" / "inside" / "site")]
        places += [str(ROOT), str(folder / Path(library.tests).parent), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        command = [sys.executable, "-m", "pytest", "-q", "-p", plugin.__name__, "-p", "no:cacheprovider"]
        command += ["--timeout", "120", "-W", "ignore", *library.options, *tests]
        end = f"ran past {deadline} s"
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=deadline, check=False
            )
            end = (
                "" if done.returncode in {0, 1, 5} else f"{tests[0]} ended with {done.returncode}: {done.stdout[-300:]}"
            )
        except subprocess.TimeoutExpired:
            pass
        found = [json.loads(line) for line in report]
    return found + ([{"test": tests[0], "outcome": "broken", "on_sim": False, "said": end}] if end else [])


def _counted(tests: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(_kind(test) for test in tests)


def _kind(test: dict[str, Any]) -> str:
    if test["outcome"] == "passed":
        return "passed, with tensors on sim" if test["on_sim"] else "passed, without"
    if test["outcome"] == "failed":
        return "failed without sim, too" if test.get("bare_fails") else "failed"
    return str(test["outcome"])


def told(library: str, tests: Sequence[dict[str, Any]]) -> str:
    """What came out, for people: the counts, and what failed, by what was said."""
    versions = [f"{name} {_version(name)}" for name in ("torch", "lightning", "accelerate", "transformers")]
    lines = [f"{library}, {', '.join(versions)}"]
    lines += [f"  {count:5} {kind}" for kind, count in sorted(_counted(tests).items())]
    causes: dict[str, list[str]] = {}
    for test in tests:
        if _kind(test) in {"failed", "broken"}:
            causes.setdefault(test["said"][:160], []).append(test["test"])
    for said, names in sorted(causes.items(), key=lambda item: -len(item[1])):
        lines.append(f"  {len(names):5} {said}\n        {names[0]}")
    return "\n".join(lines)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


if __name__ == "__main__":
    main()
