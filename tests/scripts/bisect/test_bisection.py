"""Whole bisections: wheels of a few bytes, real environments, real cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packaging.version import Version

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

WHOLE = """\
RPR-9201 (A tiny library fails), failing, plain on cpu, with the versions of stack tiny (torch==1.0) \
except for tinylib: \
First affected release: 1.3 (2026-03-01). Last release before it without the failure: 1.1 (2026-01-01). \
No answer between them: 1.2. \
Last affected release: 1.4 (2026-04-01). First release after it without the failure: 1.6 (2026-06-01). \
No answer between them: 1.5. \
6 of 7 releases tried, each decided by 2 of at most 3 runs: \
1.1 no, 1.2 unknown, 1.3 yes, 1.4 yes, 1.5 unknown, 1.6 no. \
Unknown: 1.2 (2 x different: rank 0 ended otherwise: KeyError: 'another failure'). Unknown: 1.5 (WHY)."""


@pytest.mark.long(keep=2)
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("every", [False, True], ids=["search", "scan"])
def test_both_boundaries_are_found_and_unknown_releases_listed(
    question: Question, tmp_path: Path, jobs: int, *, every: bool
) -> None:
    lines = list[str]()
    bisection = run_bisection(question, tmp_path / "answers", lines.append, every=every, jobs=jobs)
    boundaries, answers = bisection.boundaries, bisection.answers
    assert boundaries.begins == Boundary(affected=2, free=0, unknown=(1,))
    assert boundaries.ends == Boundary(affected=3, free=5, unknown=(4,))
    assert copies(tmp_path) == []
    text = describe_outcome(bisection)
    why = answers[4].why
    assert why.startswith("cannot be installed: uv pip compile: No solution found")
    if every:
        assert "7 of 7 releases tried" in text
        assert len(answers) == 7
    elif jobs == 1:
        assert text == WHOLE.replace("WHY", why)
        assert "tinylib 1.4 (2026-04-01): yes: 2 x ValueError: as documented" in lines


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
def test_a_start_without_the_failure_is_reported(spec: CellSpec, tiny: Stack, tmp_path: Path) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES, None, Version("1.6"))
    bisection = run_bisection(question, tmp_path / "answers", lambda _: None)
    assert bisection.boundaries.begins is None
    assert describe_outcome(bisection).endswith(
        " 1.6 (2026-06-01) does not show the failure (2 x ran to its end); name a release that does with --bad."
    )


@pytest.mark.parametrize(
    ("letters", "text"),
    [
        ("++++", " First affected release: 1.1 (2026-01-01), the oldest candidate. Last affected release: 1.4 "),
        ("++++", " Last affected release: 1.4 (2026-04-01), the newest candidate. 4 of 4 releases tried, "),
        ("??++", " First affected release: 1.3 (2026-03-01); the older ones gave no answer. "),
    ],
)
def test_an_open_end_is_reported(spec: CellSpec, tiny: Stack, letters: str, text: str) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES[:4], None, None)
    known = [{"+": Answer.YES, "?": Answer.UNKNOWN}[letter] for letter in letters]
    answers = {at: ReleaseAnswer(f"1.{at + 1}", answer, "because", {}, "") for at, answer in enumerate(known)}
    boundaries = scan(range(3), 3, [], Wide(known.__getitem__))
    assert text in describe_outcome(Bisection(question, boundaries, answers))


def test_a_good_release_bounds_the_search_to_its_side(spec: CellSpec, tiny: Stack) -> None:
    after = build_question(spec, tiny, "tinylib", RELEASES, Version("1.6"), None)
    assert [str(r.version) for r in after.releases] == ["1.4", "1.5", "1.6"]
    before = build_question(spec, tiny, "tinylib", RELEASES, Version("1.1"), Version("1.3"))
    assert [str(r.version) for r in before.releases] == ["1.1", "1.2", "1.3"]


def test_the_releases_can_be_limited(spec: CellSpec, tiny: Stack) -> None:
    question = build_question(spec, tiny, "tinylib", RELEASES, None, None, Version("1.2"), Version("1.5"))
    assert [str(r.version) for r in question.releases] == ["1.2", "1.3", "1.4", "1.5"]
    with pytest.raises(ReprosError, match=r"tinylib 1\.4 cannot be tried here; expected a release from 1\.5 to 1\.7"):
        build_question(spec, tiny, "tinylib", RELEASES, None, None, Version("1.5"))


def test_the_steps_include_the_cost(question: Question) -> None:
    *plan, cost = describe_steps(question)
    assert plan == [
        "7 releases of tinylib to choose from: 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7",
        "1. 1.4: must show the failure",
        "2. beginning of the failure, in 1.1 to 1.3: 1.2 first, at most 2 releases",
        "3. end of the failure, in 1.5 to 1.7: 1.6 first, at most 2 releases",
    ]
    assert cost == (
        "at most 5 releases, plus those that give no answer and those that further jobs try meanwhile; "
        "at most 1 MB to download for each; "
        "2 to 3 runs of each on stack tiny"
    )


@pytest.mark.parametrize(
    ("package", "good", "problem"),
    [
        ("lightning", None, "stack tiny does not have lightning; name another with --stack."),
        ("tinylib", "0.9", "tinylib 0.9 cannot be tried here; expected a release from 1.1 to 1.7."),
    ],
)
def test_an_invalid_question_is_refused(
    spec: CellSpec, tiny: Stack, package: str, good: str | None, problem: str
) -> None:
    with pytest.raises(ReprosError) as refused:
        build_question(spec, tiny, package, RELEASES, Version(good) if good else None, None)
    assert str(refused.value) == problem
