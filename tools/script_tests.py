"""The checkout's tests that concern some scripts, chosen by their markers.

`python -m tools.script_tests ID ...` runs them, as `nox -s unit -- --repro ID` does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.engine.catalogue import load
from repros.model import Repro
from repros.model.errors import ReprosError

EACH, ALL = "of_each_script", "of_all_scripts"
"""Markers: a test with a case for each script, named by its slug or id; a test that reads all scripts."""
FILES = (
    "tests/advise/audit/test_assess.py",
    "tests/advise/audit/test_checked_pins.py",
    "tests/advise/audit/test_formats.py",
    "tests/advise/audit/test_no_false_all_clear.py",
    "tests/advise/audit/test_public_pins.py",
    "tests/advise/audit/test_unmeasured.py",
    "tests/authoring/test_dispatch.py",
    "tests/scripts/bisect/test_evidence.py",
    "tests/engine/test_difference.py",
    "tests/advise/export/test_minimal.py",
    "tests/advise/export/test_osv.py",
    "tests/advise/export/test_script.py",
    "tests/advise/report/test_tracebacks.py",
    "tests/diagnose/match/test_golden.py",
    "tests/diagnose/match/test_hints.py",
    "tests/diagnose/match/test_pasted.py",
    "tests/diagnose/match/test_wild.py",
    "tests/engine/matrix/test_ranges.py",
    "tests/engine/matrix/test_vacuous.py",
    "tests/sampled/test_scripts.py",
    "tests/tools/site/test_machine.py",
    "tests/tools/site/test_pages.py",
    "tests/test_catalogue.py",
    "tests/test_readme.py",
    "tests/diagnose/watch/test_identify.py",
    "tests/diagnose/watch/test_measured.py",
    "tests/diagnose/watch/test_names.py",
    "tests/diagnose/watch/test_report.py",
)
"""The files with such tests; no other is collected, which takes a quarter of a minute for all."""
QUICK = "not torch and not slow"
"""What `nox -s unit` runs."""


@dataclass(frozen=True)
class Ran:
    """What the tests said."""

    passed: bool
    output: str
    """What pytest wrote, to stderr last."""

    @property
    def last_line(self) -> str:
        """Their number, and how many failed; if pytest could not begin, why."""
        return self.output.strip().rpartition("\n")[2].removeprefix("E ").strip()


def pytest_words(repros: Sequence[Repro]) -> list[str]:
    """Return the arguments with which pytest chooses the tests that concern some scripts."""
    # A word of -k is found in the names of an item and of its markers.
    names = [name for repro in repros for name in (repro.slug, repro.id.lower())]
    return ["-m", f"({EACH} or {ALL}) and {QUICK}", "-k", " or ".join([*names, ALL]), *FILES]


def run_tests(repros: Sequence[Repro], root: Path) -> Ran:
    """Run the tests of a checkout that concern some scripts; that none was chosen is a failure, too."""
    words = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *pytest_words(repros)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return Ran(done.returncode == 0, done.stdout + done.stderr)


def main(names: Sequence[str]) -> None:
    """Run the tests of the scripts with these ids or slugs, in the checkout that is the working directory."""
    try:
        catalogue = load()
        ran = run_tests([catalogue.find(name) for name in names] or list(catalogue), Path())
    except ReprosError as error:
        sys.exit(str(error))
    sys.stdout.write(ran.output)
    sys.exit(not ran.passed)


if __name__ == "__main__":
    main(sys.argv[1:])
