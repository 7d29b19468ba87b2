"""The tests that `repros check` runs for a script: those with a marker, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package_catalogue import load
from tools.script_tests import SuiteResult, find_files, pytest_words, run_tests

ROOT = Path(__file__).parents[2]
_SAMPLE = "takes failures that are there as samples"
_RULE = "a rule of repros check says the same"
_SLOW = "no part of nox -s unit"
_OWN = "reads other scripts than the catalogue's"
OTHERS = {
    "tests/scripts/try_/test_catalogue.py": _SAMPLE,
    "tests/authoring/test_families.py": _RULE,
    "tests/authoring/test_merge.py": _SLOW,
    "tests/tools/test_script_tests.py": _SAMPLE,
    "tests/tools/test_turn_over.py": _SAMPLE,
    "tests/tools/bench/test_scale.py": _SAMPLE,
    "tests/scripts/bisect/test_prober.py": _OWN,
    "tests/model/cache/test_snapshot.py": "compares two ways to read the same",
    "tests/cli/test_start.py": _SAMPLE,
    "tests/diagnose/watch/test_daily.py": _SLOW,
    "tests/diagnose/issue/test_symptoms.py": _SAMPLE,
    "tests/engine/test_seen_releases.py": _SAMPLE,
    "tests/scripts/triage/test_kind.py": _SAMPLE,
    "tests/scripts/triage/test_script_uses.py": "compares the failures with each other",
    "tests/engine/matrix/test_subset.py": _SAMPLE,
    "tests/engine/test_preparation.py": _SAMPLE,
    "tests/cli/test_stacks.py": "compares two ways to read the same",
    "tests/tools/docs/test_articles.py": _SAMPLE,
    "tests/cluster/test_payload.py": _SAMPLE,
    "tests/engine/launch/test_equivalence.py": _SLOW,
    "tests/engine/launch/test_deadlock.py": _SAMPLE,
    "tests/advise/export/test_run.py": _SLOW,
    "tests/advise/report/test_build.py": _SAMPLE,
    "tests/diagnose/match/hang/test_real_dumps.py": _SAMPLE,
    "tests/diagnose/match/test_candidates.py": "reads the sources of an installed torch",
    "tests/diagnose/messages/test_wrapped_keys.py": "matches one message, of which it names the failures",
    "tests/diagnose/match/test_hostile.py": "times texts that are no logs",
    "tests/diagnose/match/test_more_evidence.py": _SAMPLE,
    "tests/diagnose/match/test_properties.py": "compares logs with themselves in other forms",
    "tests/diagnose/match/test_traceback_formats.py": _SAMPLE,
    "tests/engine/matrix/test_ahead.py": _OWN,
    "tests/engine/matrix/test_changes.py": "compares stacks whose evidence is there, and no new failure can change it",
    "tests/engine/matrix/test_measure.py": _OWN,
    "tests/diagnose/match/test_occurrences.py": _SAMPLE,
    "tests/sampled/test_first_sample.py": "checks the ids of what people report",
    "tests/sampled/test_reports.py": "checks the ids of what people report",
    "tests/tools/site/test_browser.py": _SLOW,
    "tests/tools/site/test_matcher.py": "compares two ways to read the same",
    "tests/tools/site/test_search.py": _SLOW,
    "tests/test_noxfile.py": "the noxfile reads the headers",
    "tests/test_sabotage.py": _SLOW,
    "tests/model/test_settings.py": _SAMPLE,
    "tests/test_walls.py": "asks for no file that a new script brings",
}
"""Files that read the catalogue without a test of each script, and why a new one cannot fail them."""


def collected(*words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "::" in line]


def files_with(pattern: str) -> set[str]:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py")}
    return {name for name, text in texts.items() if re.search(pattern, text)}


def test_a_file_that_reads_the_catalogue_has_marked_tests_or_a_reason() -> None:
    """Else a new script would pass `repros check` and fail `nox -s unit`."""
    readers = files_with(r"\bload(?:_index)?\(\)|catalogue\.load\(|\bCATALOGUE\.r?glob\(|\bread_golden_logs\(")
    assert readers - set(find_files(ROOT)) == set(OTHERS)


@pytest.mark.slow
def test_each_file_has_tests_of_a_script_and_other_scripts_have_their_own() -> None:
    catalogue = load()
    first, other = catalogue.find("RPR-0001"), catalogue.find("RPR-0006")
    chosen = collected(*pytest_words([first], ROOT))
    assert {name.partition("::")[0] for name in chosen} == set(find_files(ROOT))
    each = [name.lower() for name in chosen if "[" in name]
    assert any(first.slug in name for name in each)
    assert any(first.id.lower() in name for name in each)
    assert not [name for name in each if other.slug in name or f"[{other.id.lower()}" in name]
    # The tables of the documents are compared: a name that was not in the -k of old left them out.
    assert any("test_the_table_is_that_of_the_catalogue" in name for name in chosen)


def test_the_cases_of_several_scripts_are_chosen_at_once() -> None:
    catalogue = load()
    words = pytest_words([catalogue.find("RPR-0001"), catalogue.find("RPR-0006")], ROOT)
    assert words[3] == (
        "lr_finder_leaves_results_on_cpu or rpr-0001 or eval_mode_survives_fit or rpr-0006 or of_all_scripts"
    )


def test_the_last_line_has_the_count_or_says_why_there_is_none() -> None:
    assert SuiteResult(passed=True, output="....\n4 passed in 0.1s\n").last_line == "4 passed in 0.1s"


def test_what_pytest_writes_to_stderr_is_shown(tmp_path: Path) -> None:
    """A conftest that cannot be imported, as without `hypothesis`, leaves nothing on stdout."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tmp_path / "conftest.py").write_text("import no_such_library\n", "utf-8")
    ran = run_tests([load().find("RPR-0001")], tmp_path)
    assert not ran.passed
    assert ran.last_line == "ModuleNotFoundError: No module named 'no_such_library'"
