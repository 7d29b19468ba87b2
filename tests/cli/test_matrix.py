"""`repros matrix`, on a stand-in for a stack's environment: the plan, the evidence, the check."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from repros.cli import matrix
from repros.engine import environments
from repros.engine.evidence import read
from repros.engine.evidence.timings import timings
from repros.model import Stack
from tests.cli.command import Command

OPTIONS = ("matrix", "--stack", "2023-12", "--evidence", "evidence", "--catalogue")


@pytest.fixture(autouse=True)
def no_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))


AGREEING = dedent('''\
    # /// script
    # dependencies = ["torch"]
    #
    # [tool.repro]
    # id = "RPR-9101"
    # title = "Nothing in it disagrees"
    # kind = "bug"
    # upstream.reports = ["https://example.org/1"]
    # packages = ["torch"]
    # affected = ["torch>=2.1"]
    # home = "2023-12"
    # strategies = ["plain"]
    #
    # [tool.repro.variants.failing]
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.fixed]
    # about = "passes"
    # ///
    """Symptom: it fails."""
    import sys

    if sys.argv[1] == "failing":
        raise ValueError("as documented")
    ''')


@pytest.fixture
def agreeing(tmp_path: Path) -> str:
    script = tmp_path / "agreeing.py"
    script.write_text(AGREEING, encoding="utf-8")
    return str(script)


PLAN = """\
stack    cells  known  to run  about  environment
2023-12      2      0       2   14 s  to be made: up to 2.7 GB to download, 4.8 GB on disk
2 cells to run, about 14 s on this machine plus the creation of 1 environment
"""


@pytest.fixture(autouse=True)
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package's evidence, by which the time of a cell is estimated that was never measured."""
    monkeypatch.setattr(matrix, "recorded_timings", lambda places, known: timings(known))


def test_the_plan_comes_first_and_alone_when_asked(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing, "--dry-run", "--jobs", "1") == (0, PLAN, "")
    assert not Path("evidence").exists()


def test_the_plan_is_for_this_machine_and_follows_from_what_was_measured(repros: Command, agreeing: str) -> None:
    def planned(*words: str) -> str:
        (seconds,) = re.findall(r"about (\d+) s on this machine", repros(*OPTIONS, agreeing, "--dry-run", *words)[1])
        return str(seconds)

    assert (planned("--jobs", "1"), planned("--jobs", "2")) == ("14", "10")
    repros(*OPTIONS, agreeing, "--jobs", "1")
    (ledger,) = Path("evidence").rglob("ledger.toml")
    ledger.write_text(re.sub(r" seconds = [\d.]+", " seconds = 60.0", ledger.read_text()))
    assert (planned("--again", "--jobs", "1"), planned("--again", "--jobs", "2")) == ("66", "36")


def test_a_cell_is_measured_once(repros: Command, agreeing: str) -> None:
    code, out, _ = repros(*OPTIONS, agreeing, "--jobs", "1")
    assert code == 0
    assert re.sub(r"taken \d+ s", "taken N s", out) == PLAN + (
        "making 2023-12\n"
        "2 cells to run on 2023-12\n"
        "[1/2] reproduced  RPR-9101 failing plain cpu 2023-12  1.0 s\n"
        "[2/2] clean       RPR-9101 fixed plain cpu 2023-12  1.0 s\n"
        "2 agree, 0 news, 0 trouble\n"
        "planned 14 s, taken N s\n"
        "results: .repros/matrix.jsonl\n"
    )
    assert [str(unit) for unit in read(Path("evidence"))] == ["RPR-9101 plain cpu 2023-12"]
    assert repros(*OPTIONS, agreeing) == (
        0,
        "stack    cells  known  to run  about  environment\n2023-12      2      2       0\n0 cells to run\n",
        "",
    )


def test_a_stack_that_cannot_be_made_is_reported_once_and_fails(
    repros: Command, agreeing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stack: Stack, report_progress: object) -> Path:
        raise environments.EnvironmentFailedError(stack, "it needs 4.8 GB, and /cache has 0.1 GB free")

    monkeypatch.setattr(environments, "ensure", refuse)
    code, out, _ = repros(*OPTIONS, agreeing, "--jobs", "1")
    assert code == 1
    reason = "the environment of stack 2023-12 could not be made: it needs 4.8 GB, and /cache has 0.1 GB free"
    assert out.endswith(
        f"not run on 2023-12: {reason}\n0 agree, 0 news, 0 trouble; 2 unavailable\n"
        "planned 14 s, taken 0 s\nresults: .repros/matrix.jsonl\n"
    )
    assert not Path("evidence").exists()


def test_a_check_runs_all_cells_and_names_those_that_differ(repros: Command, agreeing: str) -> None:
    repros(*OPTIONS, agreeing)
    assert repros(*OPTIONS, agreeing, "--check")[0] == 0
    (file,) = Path("evidence").rglob("RPR-*.toml")
    written = file.read_text().replace('fixed = { verdict = "clean"', 'fixed = { verdict = "unfixed"')
    file.write_text(written)
    code, out, _ = repros(*OPTIONS, agreeing, "--check")
    assert code == 1
    assert out.endswith(
        "trouble: RPR-9101 fixed plain cpu 2023-12 is clean; its evidence says unfixed\n"
        "2 cells checked: 1 differs from the evidence\n"
    )
    assert file.read_text() == written, "a check writes nothing"


def test_a_disagreement_with_the_header_is_evidence_and_fails_once(repros: Command, agreeing: str) -> None:
    Path(agreeing).write_text(AGREEING.replace('== "failing"', 'in {"failing", "fixed"}'))
    code, out, _ = repros(*OPTIONS, agreeing, "--jobs", "1")
    assert code == 1
    assert "[2/2] unfixed     RPR-9101 fixed plain cpu 2023-12" in out
    code, out, _ = repros(*OPTIONS, agreeing, "--check", "--jobs", "1")
    assert code == 0
    assert out.endswith("\n2 cells checked: all agree with the evidence\n")


def test_results_of_an_earlier_run_can_be_checked_without_running(repros: Command, agreeing: str) -> None:
    repros(*OPTIONS, agreeing)
    repros("run", "--stack", "2023-12", "--catalogue", agreeing, "--results", "run.jsonl")
    check = (*OPTIONS, agreeing, "--check", "--from", "run.jsonl")
    assert repros(*check) == (0, "2 cells checked: all agree with the evidence\n", "")
    lines = Path("run.jsonl").read_text().replace('"verdict": "reproduced"', '"verdict": "gone"')
    Path("run.jsonl").write_text(lines)
    news = "news: RPR-9101 failing plain cpu 2023-12 is gone; its evidence says reproduced\n"
    assert repros(*check) == (1, f"{news}2 cells checked: 1 differs from the evidence\n", "")
    assert repros(*check[:-3], "--from", "run.jsonl")[0] == 2
    for verdict, code, told in (
        ("infra", 1, "1 cell could not be judged, and may differ\n"),
        ("unavailable", 0, ""),
    ):
        Path("run.jsonl").write_text(lines.replace('"verdict": "gone"', f'"verdict": "{verdict}"'))
        assert repros(*check) == (code, f"1 cell checked: all agree with the evidence\n{told}", "")
        Path("run.jsonl").write_text(re.sub('"verdict": "[a-z]+"', f'"verdict": "{verdict}"', lines))
        assert repros(*check) == (code, f"0 cells checked\n{told.replace('1 cell', '2 cells')}", "")


def test_a_selection_that_names_nothing_is_refused_unless_allowed(repros: Command, agreeing: str) -> None:
    code, out, err = repros(*OPTIONS, agreeing, "--device", "sim")
    assert (code, out) == (2, "")
    nothing = "nothing fits the selection: RPR-9101 runs under plain on cpu."
    assert err == f"repros: {nothing}\n"
    assert repros(*OPTIONS, agreeing, "--device", "sim", "--allow-empty") == (0, f"{nothing}\n", "")


def test_a_damaged_file_of_evidence_is_one_sentence(repros: Command, agreeing: str) -> None:
    file = Path("evidence/2023-12/RPR-9001.toml")
    file.parent.mkdir(parents=True)
    file.write_text("nothing")
    code, out, err = repros(*OPTIONS, agreeing)
    assert (code, out) == (2, "")
    assert err.startswith(f"repros: {file} cannot be read as evidence (")


def test_evidence_that_decides_nothing_is_named_until_it_is_mended(repros: Command, agreeing: str) -> None:
    Path(agreeing).write_text(AGREEING.replace('raise ValueError("as documented")', "raise SystemExit(7)"))
    named = "the evidence of RPR-9101 failing plain cpu 2023-12 is different, which is no evidence about a range; "
    assert repros(*OPTIONS, agreeing, "--jobs", "1")[0] == 1
    code, out, _ = repros(*OPTIONS, agreeing)
    assert (code, named in out) == (1, True), "nothing is left to run, but it is not forgotten"
    Path(agreeing).write_text(AGREEING)
    code, out, _ = repros(*OPTIONS, agreeing, "--jobs", "1")
    assert (code, named in out) == (0, False)


def test_evidence_of_what_can_no_longer_run_is_removed(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing, "--jobs", "1")[0] == 0
    limited = AGREEING.replace('# home = "2023-12"\n', '# home = "2023-12"\n# requires = ["torch>=99"]\n')
    Path(agreeing).write_text(limited)
    gone = "the evidence of RPR-9101 plain cpu 2023-12, which cannot run there any more\n"
    assert f"to be removed: {gone}" in repros(*OPTIONS, agreeing, "--dry-run")[1]
    assert len(read(Path("evidence"))) == 1
    assert f"removed: {gone}" in repros(*OPTIONS, agreeing)[1]
    assert read(Path("evidence")) == {}
    assert list(Path("evidence").rglob("*.toml")) == []
