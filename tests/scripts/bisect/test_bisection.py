"""Whole bisections: wheels of a few bytes, real environments, real cells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from packaging.version import Version
from syrupy.assertion import SnapshotAssertion

from repros.engine import environments
from repros.engine.plan import CellSpec
from repros.model import Stack
from repros.model.errors import ReprosError
from repros.scripts.bisect.answers import ReleaseAnswer, append_answer, read_answers
from repros.scripts.bisect.bisection import Bisection, run_bisection
from repros.scripts.bisect.question import Question, build_question
from repros.scripts.bisect.record import bisection_record
from repros.scripts.bisect.search import Answer, Boundary, scan
from repros.scripts.bisect.text import describe_outcome, describe_steps
from tests.scripts.bisect.askers import Wide
from tests.scripts.bisect.tiny_question import RELEASES, copies


@pytest.mark.long(keep=2)
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("every", [False, True], ids=["search", "scan"])
def test_both_boundaries_are_found_and_unknown_releases_listed(
    question: Question, tmp_path: Path, jobs: int, *, every: bool, sentences: SnapshotAssertion
) -> None:
    lines = list[str]()
    bisection = run_bisection(question, tmp_path / "answers", lines.append, every=every, jobs=jobs)
    boundaries, answers = bisection.boundaries, bisection.answers
    assert boundaries.begins == Boundary(affected=2, free=0, unknown=(1,))
    assert boundaries.ends == Boundary(affected=3, free=5, unknown=(4,))
    assert copies(tmp_path) == []
    text = describe_outcome(bisection)
    why = answers[4].why
    assert "uv pip compile: No solution found" in why
    if every:
        assert len(answers) == 7
    elif jobs == 1:
        assert text.replace(why, "WHY") == sentences
        assert any(line.startswith("tinylib 1.4 (2026-04-01): yes: 2 x ValueError") for line in lines)


@pytest.mark.slow
def test_answers_are_kept_and_an_interrupted_bisection_is_resumed(question: Question, tmp_path: Path) -> None:
    folder = tmp_path / "answers"

    def interrupt(line: str) -> None:
        if ": no: " in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bisection(question, folder, interrupt, jobs=1)
    kept = {answer.version for answer in read_answers(folder / "answers.jsonl")}
    assert "1.4" in kept
    assert copies(tmp_path) == []
    with (folder / "answers.jsonl").open("a") as file:
        file.write('{"version": "1.')
    resumed = run_bisection(question, folder, lambda _: None)
    assert resumed.boundaries.begins == Boundary(affected=2, free=0, unknown=(1,))
    # A third time nothing is run but the failed installation: the network may be back.
    runs = len(list((folder / "runs").glob("*/1.*/1")))
    again = run_bisection(question, folder, lambda _: None)
    assert again.boundaries == resumed.boundaries
    assert len(list((folder / "runs").glob("*/1.*/1"))) == runs
    json.dumps(bisection_record(again))


def test_a_bisection_with_earlier_answers_makes_no_environment(
    question: Question, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "ensure", lambda *_: pytest.fail("an environment was made"))
    for release in RELEASES:
        answer = Answer.YES if "1.3" <= str(release.version) <= "1.5" else Answer.NO
        key = question.key(release)
        append_answer(tmp_path / "answers.jsonl", ReleaseAnswer(str(release.version), answer, "", {"x": "1"}, key))
    lines = list[str]()
    bisection = run_bisection(question, tmp_path, lines.append)
    assert bisection.boundaries.begins == Boundary(affected=2, free=1, unknown=())
    assert bisection.boundaries.ends == Boundary(affected=4, free=5, unknown=())
    assert lines[0] == "tinylib 1.4 (2026-04-01): yes: "


@pytest.mark.slow
def test_a_start_without_the_failure_is_reported(
    spec: CellSpec, tiny: Stack, tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES, None, Version("1.6"))
    bisection = run_bisection(question, tmp_path / "answers", lambda _: None)
    assert bisection.boundaries.begins is None
    assert describe_outcome(bisection) == sentences


@pytest.mark.parametrize(
    "letters",
    ["++++", "??++"],
)
def test_an_open_end_is_reported(spec: CellSpec, tiny: Stack, letters: str, sentences: SnapshotAssertion) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES[:4], None, None)
    known = [{"+": Answer.YES, "?": Answer.UNKNOWN}[letter] for letter in letters]
    answers = {at: ReleaseAnswer(f"1.{at + 1}", answer, "because", {}, "") for at, answer in enumerate(known)}
    boundaries = scan(range(3), 3, [], Wide(known.__getitem__))
    assert describe_outcome(Bisection(question, boundaries, answers)) == sentences


def test_a_good_release_bounds_the_search_to_its_side(spec: CellSpec, tiny: Stack) -> None:
    after = build_question(spec, tiny, "tinylib", RELEASES, Version("1.6"), None)
    assert [str(r.version) for r in after.releases] == ["1.4", "1.5", "1.6"]
    before = build_question(spec, tiny, "tinylib", RELEASES, Version("1.1"), Version("1.3"))
    assert [str(r.version) for r in before.releases] == ["1.1", "1.2", "1.3"]


def test_the_releases_can_be_limited(spec: CellSpec, tiny: Stack) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES, None, None, Version("1.2"), Version("1.5"))
    assert [str(r.version) for r in question.releases] == ["1.2", "1.3", "1.4", "1.5"]
    with pytest.raises(ReprosError, match=r"^tinylib 1\.4 .*1\.5.*1\.7"):
        build_question(spec, tiny, "tinylib", RELEASES, None, None, Version("1.5"))


def test_the_steps_include_the_cost(question: Question) -> None:
    *plan, cost = describe_steps(question)
    versions = [re.findall(r"\b1\.\d\b", line) for line in plan]
    every = ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"]
    assert versions == [every, ["1.4"], ["1.1", "1.3", "1.2"], ["1.5", "1.7", "1.6"]]
    assert re.findall(r"\d+", cost) == ["5", "1", "2", "3"], "releases, MB, and runs from and to"


@pytest.mark.parametrize(
    ("package", "good", "place"),
    [("lightning", None, "stack tiny .*lightning"), ("tinylib", "0.9", r"^tinylib 0\.9 .*1\.1.*1\.7")],
)
def test_an_invalid_question_is_refused(
    spec: CellSpec, tiny: Stack, package: str, good: str | None, place: str
) -> None:
    with pytest.raises(ReprosError, match=place):
        build_question(spec, tiny, package, RELEASES, Version(good) if good else None, None)
