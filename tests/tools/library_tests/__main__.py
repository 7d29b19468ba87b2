"""`python -m tests.tools.library_tests LIBRARY CHECKOUT`: runs a library's own tests on sim, where the library is.

Each file is run in a process of its own, with sim, and each test that asks for it alone. What fails is run once more
without sim, with nothing exchanged: what fails there as well says nothing of sim. pytest, pytest-timeout and what the
tests import must be there. `--keep VERSION` keeps what came out as that of the tests of this version; RESULTS.md is
written from what is kept (`python -m tests.tools.library_tests.results`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.library_tests import plugin, results
from tests.tools.library_tests.exchange import LIBRARIES, Library, exchanged
from tests.tools.library_tests.results import Test

ROOT = Path(__file__).parents[3]


def main() -> None:
    """Run them and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", nargs="*", default=[""], help="only those files whose path holds one of these texts")
    parser.add_argument("--deadline", type=int, default=900, help="seconds for one file")
    parser.add_argument("--out", type=Path, help="a file for one line of JSON for each test; those there are not run")
    parser.add_argument("--keep", metavar="VERSION", help="keep the results, as those of the tests of this version")
    given = parser.parse_args()
    out = given.out or Path(os.devnull)
    tests: list[Test] = [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []
    done = {test["test"].partition("::")[0] for test in tests}
    with tempfile.TemporaryDirectory() as folder, out.open("a") as lines:
        run = Run(LIBRARIES[given.library], given.checkout.absolute(), Path(folder), given.deadline)
        left = []
        for file in exchanged(run.library, run.checkout, run.folder):
            name = str(file.relative_to(folder))
            if name in done:
                continue
            if not any(text in name for text in given.files):
                left.append(name)
                continue
            found = run.file(file)
            tests += found
            lines.writelines(json.dumps(test) + "\n" for test in found)
            lines.flush()
            print(f"{name}: {dict(results.counted(found))}", file=sys.stderr, flush=True)
    made = results.make(given.library, given.keep, tests, left)
    if given.keep:
        results.keep(made)
    print(results.told(made))


@dataclass(frozen=True)
class Run:
    """A library's tests, ready to be run."""

    library: Library
    checkout: Path
    """Where they come from."""
    folder: Path
    """Where they are with the words exchanged."""
    deadline: int
    """Seconds for one file."""

    def file(self, file: Path) -> Sequence[Test]:
        """Runs one file's tests, and what is to be seen of them in further runs."""
        tests = {test["test"]: test for test in self._pytest([str(file)])}
        for name in [name for name, test in tests.items() if self.library.alone and results.is_to_run_alone(test)]:
            again = self._pytest([name], {self.library.alone: "1"})
            tests.update({test["test"]: test for test in again})
        failed = {name: test for name, test in tests.items() if test["outcome"] == "failed"}
        if failed and not self.library.asks:
            again = self._pytest([str(self.checkout / file.relative_to(self.folder))], bare=True)
            broken = {test["test"] for test in again if test["outcome"] == "failed"}
            for name, test in failed.items():
                test["bare_fails"] = name in broken | {one.replace("cuda", "sim") for one in broken}
        return list(tests.values())

    def _pytest(
        self, tests: Sequence[str], settings: Mapping[str, str] | None = None, *, bare: bool = False
    ) -> list[Test]:
        place = self.checkout if bare else self.folder
        with tempfile.TemporaryDirectory() as notes:
            report, ranks = Path(notes, "tests"), Path(notes, "ranks")
            report.touch()
            ranks.touch()
            environment = {**os.environ, **self.library.settings, **(settings or {})}
            environment.update({plugin.REPORT: str(report), plugin.RANKS: str(ranks)})
            environment.update({plugin.BARE: "1"} if bare else {"REPROS_SIM": "1"})
            # What the tests start in their turn needs the environment's commands, and sim as soon as torch is there.
            environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            sites = [] if bare else [ROOT / "repros" / "inside" / "site", Path(__file__).parent / "site"]
            paths = [*sites, ROOT, (place / self.library.tests).parent, os.environ.get("PYTHONPATH", "")]
            # The plugin under a name of its own: where a library's `tests` are a package, ours cannot be.
            paths.append(Path(plugin.__file__).parent)
            environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths if path)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider"]
            command += ["-W", "ignore", "--rootdir", str(place), *self.library.options, *tests]
            code, said = _ended(command, place, environment, self.deadline)
            found = [json.loads(line) for line in report.read_text().splitlines()]
        if code in ({0, 1, 5} if found else {0, 5}):  # of 1, Python's own for what it could not run, something was told
            said = ""
        broken = {"test": tests[0].replace(f"{place}/", ""), "outcome": "broken", "on_sim": False, "said": said}
        return [*found, broken] if said and broken["test"] not in {test["test"] for test in found} else found


def _ended(command: Sequence[str], folder: Path, environment: Mapping[str, str], deadline: int) -> tuple[int, str]:
    """Runs pytest; its exit code, and what there is to say about its end."""
    started = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = started.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return started.returncode, f"ran past {deadline} s"
    return started.returncode, f"ended with {started.returncode}: {printed[-300:]}"


if __name__ == "__main__":
    main()
