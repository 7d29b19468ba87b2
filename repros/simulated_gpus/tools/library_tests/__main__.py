"""Run a library's own tests on simulated GPUs, unmodified.

    python -m repros.simulated_gpus.tools.library_tests LIBRARY CHECKOUT

Files run in a process of their own or some together. A test that was skipped for want of a setting, such as other GPUs
or a process of its own, gets both. Failed tests run once more without GPUs: a test that fails there too shows nothing
about the simulated ones. The environment needs pytest, pytest-timeout and the packages that the tests import. `--keep
VERSION` saves the results as those of the tests of that version; `python -m
repros.simulated_gpus.tools.library_tests.results` writes them to RESULTS.md.
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

from repros.simulated_gpus.tools.library_tests import plugin, results
from repros.simulated_gpus.tools.library_tests.libraries import LIBRARIES, Library, find_tests
from repros.simulated_gpus.tools.library_tests.results import Test
from repros.simulated_gpus.tools.simulated import SITE, simulated_environ

ROOT = Path(__file__).parents[4]


def main() -> None:
    """Run the tests and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", nargs="*", default=[""], help="only files whose path contains one of these texts")
    parser.add_argument("--deadline", type=int, default=900, help="seconds for one process")
    parser.add_argument(
        "--out", type=Path, help="a file for one line of JSON for each test; files in it are not run again"
    )
    parser.add_argument("--keep", metavar="VERSION", help="save the results as those of this version's tests")
    options = parser.parse_args()
    out = options.out or Path(os.devnull)
    tests: list[Test] = [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []
    done = {test["test"].partition("::")[0] for test in tests}
    run = Run(LIBRARIES[options.library], options.checkout.absolute(), options.deadline)
    with out.open("a") as lines:
        names = [str(file.relative_to(run.checkout)) for file in find_tests(run.library, run.checkout)]
        chosen = [name for name in names if any(text in name for text in options.files)]
        not_run = [name for name in names if name not in done and name not in chosen]
        left = [name for name in chosen if name not in done]
        size = run.library.files_in_a_process
        for some in (left[start : start + size] for start in range(0, len(left), size)):
            found = run.run_files(*some)
            tests += found
            lines.writelines(json.dumps(test) + "\n" for test in found)
            lines.flush()
            print(f"{' '.join(some)}: {dict(results.count_kinds(found))}", file=sys.stderr, flush=True)
    made = results.make_results(options.library, options.keep, tests, not_run)
    if options.keep:
        results.save(made)
    print(results.summary(made))


@dataclass(frozen=True)
class Run:
    """A library's tests, ready to run."""

    library: Library
    checkout: Path
    """The library's checkout."""
    deadline: int
    """Seconds for one process."""

    def run_files(self, *files: str) -> Sequence[Test]:
        """Run some files' tests, then those skipped for want of a setting, then the failed ones without GPUs."""
        tests = {test["test"]: test for test in self._pytest(files)}
        if len(files) > 1 and any(test["outcome"] == "broken" for test in tests.values()):
            return [test for file in files for test in self.run_files(file)]
        for reason, settings in self.library.settings_by_skip.items():
            for name in [name for name, test in tests.items() if results.is_skipped_for(reason, test)]:
                tests.update({test["test"]: test for test in self._pytest([name], settings)})
        failed = {name: test for name, test in tests.items() if test["outcome"] == "failed"}
        if failed and not self.library.marker:
            again = self._pytest(list(failed), bare=True)
            broken = {test["test"] for test in again if test["outcome"] == "failed"}
            for name, test in failed.items():
                test["bare_fails"] = name in broken
        return list(tests.values())

    def _pytest(
        self, tests: Sequence[str], settings: Mapping[str, str] | None = None, *, bare: bool = False
    ) -> list[Test]:
        place = self.checkout
        with tempfile.TemporaryDirectory() as notes:
            report, ranks = Path(notes, "tests"), Path(notes, "ranks")
            report.touch()
            ranks.touch()
            kept = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_SIM")}
            environment = {**kept, **self.library.environ, **(settings or {})}
            environment.update({plugin.REPORT: str(report), plugin.RANKS: str(ranks)})
            environment.update({} if bare else simulated_environ())
            # Processes that the tests start need the environment's commands.
            environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            sites = [] if bare else [SITE, Path(__file__).parent / "site"]
            paths = [*sites, ROOT, (place / self.library.tests).parent, os.environ.get("PYTHONPATH", "")]
            # The plugin is imported by a top-level name, because a library's own `tests` may be a package.
            paths.append(Path(plugin.__file__).parent)
            environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths if path)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider"]
            command += ["--continue-on-collection-errors", "-W", self.library.warnings, "--rootdir", str(place)]
            command += [*self.library.options, *tests]
            code, message = _run_until(command, place, environment, self.deadline)
            found = [json.loads(line) for line in report.read_text().splitlines()]
        if code in ({0, 1, 5} if found else {0, 5}):  # 1 is also Python's code for a run that could not start
            message = ""
        broken = {"test": tests[0].replace(f"{place}/", ""), "outcome": "broken", "on_sim": False, "message": message}
        return [*found, broken] if message and broken["test"] not in {test["test"] for test in found} else found


def _run_until(command: Sequence[str], folder: Path, environment: Mapping[str, str], deadline: int) -> tuple[int, str]:
    """Run pytest; return its exit code, and a message about how it ended."""
    started = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = started.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return started.returncode, f"exceeded {deadline} s"
    return started.returncode, f"ended with {started.returncode}: {printed[-300:]}"


if __name__ == "__main__":
    main()
