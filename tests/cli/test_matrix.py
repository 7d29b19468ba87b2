"""`repros matrix`, on a stand-in for a stack's environment: the plan, the evidence, the check."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import dedent

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.cli import matrix
from repros.engine import environments, record
from repros.engine.evidence import read
from repros.engine.evidence.timings import timings
from repros.model import Stack, Verdict
from tests.cli.command import Command
from tests.transcript import transcript

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


NAMED = re.compile(r"^\w+: RPR-9101 (\w+) plain cpu 2023-12 is ", re.MULTILINE)
"""The cells of which a check says something."""
UNDECIDED = AGREEING.replace('raise ValueError("as documented")', "raise SystemExit(7)")
"""The script ends otherwise than documented, which is no evidence about a range."""
LIMITED = AGREEING.replace('# home = "2023-12"\n', '# home = "2023-12"\n# requires = ["torch>=99"]\n')
"""The script runs on no stack."""


@pytest.fixture
def agreeing(tmp_path: Path) -> str:
    script = tmp_path / "agreeing.py"
    script.write_text(AGREEING, encoding="utf-8")
    return str(script)


@pytest.fixture(autouse=True)
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package's evidence, by which the time of a cell is estimated that was never measured."""
    monkeypatch.setattr(matrix, "recorded_timings", lambda places, known: timings(known))


def test_text(repros: Command, agreeing: str, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    """Whole sessions: measured, checked, changed, and without an environment."""
    matrix = "matrix --stack 2023-12 --evidence evidence --jobs 1 --catalogue agreeing.py"
    sessions = [transcript(repros, f"{matrix} --dry-run", matrix, matrix, f"{matrix} --check")]
    sessions.append(transcript(repros, f"{matrix} --device sim", f"{matrix} --device sim --allow-empty"))
    (file,) = Path("evidence").rglob("RPR-*.toml")
    file.write_text(file.read_text().replace('fixed = { verdict = "clean"', 'fixed = { verdict = "unfixed"'))
    sessions.append(transcript(repros, f"{matrix} --check"))
    run = "run --stack 2023-12 --catalogue agreeing.py --results run.jsonl --quiet"
    repros(*run.split())
    results = Path("run.jsonl").read_text()
    for verdict in ("gone", "infra"):
        Path("run.jsonl").write_text(results.replace('"verdict": "reproduced"', f'"verdict": "{verdict}"'))
        sessions.append(transcript(repros, f"{matrix} --check --from run.jsonl".replace(" --jobs 1", "")))
    Path(agreeing).write_text(LIMITED)
    sessions.append(transcript(repros, f"{matrix} --dry-run", matrix))
    Path(agreeing).write_text(UNDECIDED)
    sessions.append(transcript(repros, matrix, matrix))
    shutil.rmtree("evidence")
    monkeypatch.setattr(environments, "ensure", refuse)
    sessions.append(transcript(repros, matrix))
    # Estimates follow from what was measured a moment before.
    assert snapshot == re.sub(r" +\d+ s\b", " N s", "\n".join(sessions))


def refuse(stack: Stack, report_progress: object) -> Path:
    raise environments.EnvironmentFailedError(stack, "it needs 4.8 GB, and /cache has 0.1 GB free")


def test_a_plan_alone_measures_nothing(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing, "--dry-run")[0] == 0
    assert not Path("evidence").exists()


def test_the_plan_is_for_this_machine_and_follows_from_what_was_measured(repros: Command, agreeing: str) -> None:
    def planned(*words: str) -> str:
        *_, seconds = re.findall(r"(\d+) s\b", repros(*OPTIONS, agreeing, "--dry-run", *words)[1])
        return str(seconds)

    assert (planned("--jobs", "1"), planned("--jobs", "2")) == ("14", "10")
    repros(*OPTIONS, agreeing, "--jobs", "1")
    (ledger,) = Path("evidence").rglob("ledger.toml")
    ledger.write_text(re.sub(r" seconds = [\d.]+", " seconds = 60.0", ledger.read_text()))
    assert (planned("--again", "--jobs", "1"), planned("--again", "--jobs", "2")) == ("66", "36")


def test_a_cell_is_measured_once(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing)[0] == 0
    assert [str(unit) for unit in read(Path("evidence"))] == ["RPR-9101 plain cpu 2023-12"]
    assert {line["variant"] for line in record.read(Path(".repros/matrix.jsonl"))} == {"failing", "fixed"}
    Path(".repros/matrix.jsonl").unlink()
    assert repros(*OPTIONS, agreeing)[0] == 0
    assert not Path(".repros/matrix.jsonl").exists()


def test_a_stack_that_cannot_be_made_fails_and_leaves_no_evidence(
    repros: Command, agreeing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "ensure", refuse)
    code, out, _ = repros(*OPTIONS, agreeing, "--jobs", "1")
    assert (code, out.count("/cache has 0.1 GB free")) == (1, 1)
    assert not Path("evidence").exists()


def test_a_check_runs_all_cells_and_writes_nothing(repros: Command, agreeing: str) -> None:
    repros(*OPTIONS, agreeing)
    assert repros(*OPTIONS, agreeing, "--check")[0] == 0
    (file,) = Path("evidence").rglob("RPR-*.toml")
    written = file.read_text().replace('fixed = { verdict = "clean"', 'fixed = { verdict = "unfixed"')
    file.write_text(written)
    code, out, _ = repros(*OPTIONS, agreeing, "--check")
    assert (code, NAMED.findall(out)) == (1, ["fixed"])
    assert file.read_text() == written


def test_a_disagreement_with_the_header_is_evidence_and_fails_once(repros: Command, agreeing: str) -> None:
    Path(agreeing).write_text(AGREEING.replace('== "failing"', 'in {"failing", "fixed"}'))
    assert repros(*OPTIONS, agreeing)[0] == 1
    (measured,) = read(Path("evidence")).values()
    assert measured.variants["fixed"].verdict is Verdict.UNFIXED
    code, out, _ = repros(*OPTIONS, agreeing, "--check")
    assert (code, NAMED.findall(out)) == (0, [])


def test_results_of_an_earlier_run_can_be_checked_without_running(repros: Command, agreeing: str) -> None:
    repros(*OPTIONS, agreeing)
    repros("run", "--stack", "2023-12", "--catalogue", agreeing, "--results", "run.jsonl")
    Path(".repros/matrix.jsonl").unlink()
    check = (*OPTIONS, agreeing, "--check", "--from", "run.jsonl")
    lines = Path("run.jsonl").read_text()
    # An unavailable cell was not run, and a cell that could not be judged may differ.
    for verdict, code in {"reproduced": 0, "gone": 1, "infra": 1, "unavailable": 0}.items():
        Path("run.jsonl").write_text(lines.replace('"verdict": "reproduced"', f'"verdict": "{verdict}"'))
        found, out, err = repros(*check)
        assert (found, err) == (code, "")
        assert NAMED.findall(out) == (["failing"] if verdict == "gone" else [])
        assert f"{2 if verdict in {'reproduced', 'gone'} else 1} cell" in out
    assert repros(*check[:-3], "--from", "run.jsonl")[0] == 2
    assert not Path(".repros/matrix.jsonl").exists()


def test_a_selection_that_names_nothing_is_refused_unless_allowed(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing, "--device", "sim")[:2] == (2, "")
    assert repros(*OPTIONS, agreeing, "--device", "sim", "--allow-empty")[0] == 0


def test_evidence_that_decides_nothing_is_named_until_it_is_mended(repros: Command, agreeing: str) -> None:
    Path(agreeing).write_text(UNDECIDED)
    cell = "RPR-9101 failing plain cpu 2023-12"
    assert repros(*OPTIONS, agreeing)[0] == 1
    code, out, _ = repros(*OPTIONS, agreeing)
    assert (code, cell in out) == (1, True), "nothing is left to run, but it is not forgotten"
    Path(agreeing).write_text(AGREEING)
    assert repros(*OPTIONS, agreeing)[0] == 0
    code, out, _ = repros(*OPTIONS, agreeing)
    assert (code, cell in out) == (0, False)


def test_evidence_of_what_can_no_longer_run_is_removed(repros: Command, agreeing: str) -> None:
    assert repros(*OPTIONS, agreeing)[0] == 0
    Path(agreeing).write_text(LIMITED)
    assert "RPR-9101 plain cpu 2023-12" in repros(*OPTIONS, agreeing, "--dry-run")[1]
    assert len(read(Path("evidence"))) == 1
    assert "RPR-9101 plain cpu 2023-12" in repros(*OPTIONS, agreeing)[1]
    assert read(Path("evidence")) == {}
    assert list(Path("evidence").rglob("*.toml")) == []
