"""Several releases side by side, in real environments, and what the next bisection takes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from repros.engine import catalogue
from repros.engine.environments.releases import PackageRelease
from repros.engine.plan import CellSpec, Selection, select
from repros.model import Device, Stack
from repros.scripts.bisect.answers import read_answers
from repros.scripts.bisect.bisection import run_bisection
from repros.scripts.bisect.pool import jobs_for
from repros.scripts.bisect.question import Question, build_question
from repros.scripts.bisect.search import Boundary
from repros.scripts.bisect.swap import Swap
from tests.scripts.bisect.killed import bisect_until_killed
from tests.scripts.bisect.tiny_question import RELEASES, SCRIPT, copies
from tests.tiny_stack import write_wheel

MEETS = """\
import pathlib, time

def run():
    folder = pathlib.Path({folder!r})
    (folder / "{version}").touch()
    until = time.monotonic() + 40
    while len(list(folder.iterdir())) < 2:
        if time.monotonic() > until:
            raise KeyError("met nobody")
        time.sleep(0.02)
    raise ValueError("as documented")
"""
"""A release that fails as documented once another one runs at the same time."""

LASTS = """\
import pathlib, time

def run():
    pathlib.Path({file!r}).touch()
    time.sleep(600)
"""


def test_jobs_follow_from_the_machine_and_cells_on_gpus_are_alone(question: Question) -> None:
    assert [jobs_for(question, cores, 10**10) for cores in (0, 1, 4, 9)] == [1, 1, 4, 5]
    cuda = replace(question, spec=replace(question.spec, device=Device.CUDA))
    assert jobs_for(cuda, 4, 10**10) == 1


@pytest.mark.slow
def test_two_releases_run_at_the_same_time(spec: CellSpec, tiny: Stack, tmp_path: Path) -> None:
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    for version in ("1.3", "1.4"):
        write_wheel(tmp_path, "tinylib", MEETS.format(folder=str(meeting), version=version), version)
    question = build_question(spec, tiny, "tinylib", RELEASES[2:4], None, None)
    bisection = run_bisection(question, tmp_path / "answers", lambda _: None, every=True, jobs=2)
    assert {answer.version: answer.answer for answer in bisection.answers.values()} == {"1.3": "yes", "1.4": "yes"}


@pytest.mark.slow
def test_an_interrupt_ends_what_runs_and_keeps_no_answer_of_it(spec: CellSpec, tiny: Stack, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    write_wheel(tmp_path, "tinylib", LASTS.format(file=str(begun)), "1.6")
    question = build_question(spec, tiny, "tinylib", [RELEASES[3], RELEASES[5]], None, None)

    def interrupt(line: str) -> None:
        if line.startswith("tinylib 1.4"):
            while not begun.exists():
                pass
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bisection(question, tmp_path / "answers", interrupt, jobs=2)
    assert {answer.version for answer in read_answers(tmp_path / "answers" / "answers.jsonl")} == {"1.4"}
    assert copies(tmp_path) == []


@pytest.mark.slow
def test_a_killed_bisection_goes_on_where_it_was_and_its_copies_are_removed(question: Question, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    bisect_until_killed(run_bisection, question, folder, jobs=2)
    assert copies(tmp_path)
    kept = {answer.version for answer in read_answers(folder / "answers.jsonl")}
    assert "1.4" in kept
    again = run_bisection(question, folder, lambda _: None, jobs=2)
    assert (again.boundaries.begins, again.boundaries.ends) == (Boundary(2, 0, (1,)), Boundary(3, 5, (4,)))
    assert copies(tmp_path) == []
    answers = [answer.version for answer in read_answers(folder / "answers.jsonl")]
    assert len(answers) == len(set(answers)), "no release was probed twice"


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the versions that are installed from now on."""
    versions, install = list[str](), Swap.install

    def install_and_note(self: Swap, release: PackageRelease, *, as_of_its_day: bool = False) -> None:
        versions.append(f"{release.version}{' as of its day' if as_of_its_day else ''}")
        install(self, release, as_of_its_day=as_of_its_day)

    monkeypatch.setattr(Swap, "install", install_and_note)
    return versions


@pytest.mark.slow
def test_another_repro_installs_no_release_that_cannot_be_imported(
    question: Question, tiny: Stack, tmp_path: Path, installs: list[str]
) -> None:
    write_wheel(tmp_path, "tinylib", "raise ImportError('no such name')\n", "1.3")
    first = run_bisection(question, tmp_path / "RPR-9201-tinylib", lambda _: None, every=True, jobs=2)
    why = first.answers[2].why.removesuffix(")")
    assert [part in why for part in ("ImportError: no such name", "2026-03-01")] == [True, True]
    assert {"1.3", "1.3 as of its day"} <= {*installs}
    installs.clear()
    script = tmp_path / "second_script.py"
    script.write_text(SCRIPT.replace("RPR-9201", "RPR-9202"))
    (spec,) = select(catalogue.load([script]), Selection(variants=("failing",)))
    second = build_question(spec, tiny, "tinylib", RELEASES[2:4], None, None)
    bisection = run_bisection(second, tmp_path / "RPR-9202-tinylib", lambda _: None, every=True, jobs=2)
    assert bisection.answers[0].why.startswith(f"{why}; "), "it is remembered"
    assert installs == ["1.4"]
    assert bisection.boundaries.begins == Boundary(1, None, (0,))


@pytest.mark.slow
def test_a_remembered_failure_that_the_repro_documents_is_run(
    spec: CellSpec, tiny: Stack, tmp_path: Path, installs: list[str]
) -> None:
    write_wheel(tmp_path, "tinylib", "raise ValueError('as documented')\n", "1.3")
    other = tmp_path / "other_script.py"
    other.write_text(SCRIPT.replace("RPR-9201", "RPR-9202").replace('"as documented"', '"another failure"'))
    (others,) = select(catalogue.load([other]), Selection(variants=("failing",)))
    ignorant = build_question(others, tiny, "tinylib", RELEASES[2:3], None, Version("1.3"))
    unknown = run_bisection(ignorant, tmp_path / "RPR-9202-tinylib", lambda _: None, jobs=1)
    assert unknown.answers[0].answer == "unknown"
    installs.clear()
    documented = build_question(spec, tiny, "tinylib", RELEASES[2:3], None, Version("1.3"))
    found = run_bisection(documented, tmp_path / "RPR-9201-tinylib", lambda _: None, jobs=1)
    assert found.answers[0].answer == "yes"
    assert installs == ["1.3"]
