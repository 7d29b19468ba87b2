"""`repros bisect SCRIPT`: wheels of a few bytes, real environments, real runs in the sandbox; and its interruption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from repros.model import Stack
from repros.scripts.bisect.answers import read_answers
from repros.scripts.bisect.script.bisection import run_script_bisection
from repros.scripts.bisect.script.patterns import Patterns
from repros.scripts.bisect.script.question import ScriptQuestion
from repros.scripts.bisect.search import Boundary
from repros.scripts.try_.sandbox import Limits, find_sandbox
from repros.scripts.try_.script import read_script
from repros.scripts.try_.task import Task, TaskOptions
from tests.scripts.bisect.killed import bisect_until_killed
from tests.scripts.bisect.scripts import Bisect, Publish, as_file, shows
from tests.scripts.bisect.tiny_question import LIBRARY, RELEASES, copies
from tests.tiny_stack import write_wheel


@pytest.mark.slow
def test_the_change_is_found_around_a_release_that_shows_something_else(bisect: Bisect, tmp_path: Path) -> None:
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.4")
    assert ended.code == 0
    assert [line.partition(": ")[0] for line in ended.out.splitlines()[:5]] == [
        "1.1  2026-01-01  2 x clean",
        "1.2  2026-02-01  2 x KeyError",
        "1.3  2026-03-01  2 x ValueError",
        "1.4  2026-04-01  2 x ValueError",
        "",
    ]
    assert "tinylib 1.4 (2026-04-01): 2 x ValueError: as documented\n" in ended.err
    assert copies(tmp_path) == []
    # A second time nothing is run.
    runs = sorted(Path(".repros/runs").glob("*/1.*/*"))
    assert bisect("train.py", "--package", "tinylib", "--to", "1.4").out == ended.out
    assert sorted(Path(".repros/runs").glob("*/1.*/*")) == runs
    # A changed script is another one.
    Path("train.py").write_text("import tinylib\n")
    changed = bisect("train.py", "--package", "tinylib", "--to", "1.4", "--json")
    assert (changed.code, set(shows(changed.json).values())) == (1, {"clean"})


@pytest.mark.slow
def test_two_ends_that_show_the_same_are_reported(bisect: Bisect) -> None:
    ended = bisect("train.py", "--package", "tinylib", "--jobs", "1")
    assert ended.code == 1
    said = " ".join(ended.out.split())
    assert "tinylib 1.1 and 1.7 " in said
    assert "5 releases between them may show another: --every examines each." in said
    every = bisect("train.py", "--package", "tinylib", "--every", "--runs", "1", "--json")
    assert every.code == 1
    assert every.json["change"] is None
    assert shows(every.json) == {
        "1.1": "clean",
        "1.2": "KeyError: 'another failure'",
        "1.3": "ValueError: as documented",
        "1.4": "ValueError: as documented",
        "1.5": None,
        "1.6": "clean",
        "1.7": "clean",
    }


@pytest.mark.slow
def test_ends_that_cannot_be_asked_give_way_to_the_next(
    bisect: Bisect, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.5, the newest, cannot be installed, and 1.1 cannot be imported, with the dependencies of its day neither."""
    monkeypatch.setattr("repros.scripts.bisect.script.question.fetch_files", lambda _: list(map(as_file, RELEASES[:5])))
    publish("1.1", "raise ImportError('no such name')\n")
    ended = bisect("train.py", "--package", "tinylib", "--json")
    assert ended.code == 0, ended.err
    report = ended.json
    assert report["compared"] == ["1.2", "1.4"]
    assert report["change"] == {"until": "1.2", "since": "1.3", "unknown": []}
    why = {release["version"]: release["why"] for release in report["releases"] if release["shows"] is None}
    assert "ImportError: no such name" in why["1.1"]
    assert "uv pip compile: No solution found" in why["1.5"]


@pytest.mark.slow
def test_a_package_that_the_stack_lacks_brings_what_it_requires(
    tiny: Stack, bisect: Bisect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "bare.lock.txt"
    lock.write_text("# a lock\ntorch==1.0    # via the stack itself\n")
    bare = replace(tiny, name="bare", requirements=(Requirement("torch==1.0"),), lock=lock)
    monkeypatch.setattr("repros.cli.shared.bisect_script.stack", lambda *_: bare)
    write_wheel(tmp_path, "tinyneed")
    for version in ("1.4", "1.6"):
        write_wheel(tmp_path, "tinylib", LIBRARY[version], version, ["tinyneed"])
    Path("train.py").write_text("import tinyneed, tinylib\n\ntinylib.run()\n")
    words = ("train.py", "--package", "tinylib", "--from", "1.4", "--to", "1.6", "--runs", "1", "--json")
    ended = bisect(*words)
    assert ended.code == 0, ended.err
    assert ended.json["change"] == {"until": "1.4", "since": "1.6", "unknown": ["1.5"]}
    # A module that no release has is reported for the first probe.
    Path("train.py").write_text("import tinylib, fastai\n")
    none = bisect(*words)
    assert none.code == 2
    assert none.err.splitlines()[-1].startswith("repros: tinylib 1.4 ")
    assert "ModuleNotFoundError: No module named 'fastai'" in none.err.splitlines()[-1]


@pytest.mark.slow
def test_a_named_end_that_cannot_be_asked_is_refused(bisect: Bisect) -> None:
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.5")
    assert (ended.code, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith("repros: tinylib 1.5 ")
    assert "uv pip compile: No solution found" in last


@pytest.mark.long
@pytest.mark.slow
def test_a_program_that_does_not_end_and_one_that_never_ends_alike(bisect: Bisect, publish: Publish) -> None:
    publish("1.2", "import time\n\ndef run(): raise ValueError(f'{time.time_ns()} ns passed')\n")
    publish("1.3", "import time\n\ndef run(): time.sleep(60)\n")
    publish("1.4", "import time\n\ndef run(): time.sleep(60)\n")
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.4", "--timeout", "8", "--json", "--every")
    assert ended.code == 0, ended.err
    assert ended.json["change"] == {"until": "1.1", "since": "1.3", "unknown": ["1.2"]}
    assert shows(ended.json) == {
        "1.1": "clean",
        "1.2": None,
        "1.3": (hung := ended.json["releases"][2]["shows"]),
        "1.4": hung,
    }
    assert "8 s" in hung
    assert " 1.2 (1 x ValueError: " in ended.json["says"][1]


@pytest.mark.slow
def test_a_message_that_names_the_release_is_the_same_in_each(bisect: Bisect, publish: Publish) -> None:
    for version in ("1.2", "1.3", "1.4"):
        publish(version, f"def run(): raise ValueError('tinylib {version} at {{:#x}}'.format(id(run)))\n")
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.4", "--json")
    assert ended.json["says"] == ["clean with tinylib 1.1, ValueError: tinylib {version} at {address} from 1.2 on."]


@pytest.fixture
def question(tiny: Stack, here: Path) -> ScriptQuestion:
    script = read_script(here / "train.py")
    task = Task(script, (), TaskOptions(watch=False), Limits(60, 2**31, 10**6), find_sandbox(network=False))
    return ScriptQuestion(task, Patterns(), tiny, "tinylib", tuple(RELEASES[:4]), runs=1)


@pytest.mark.slow
def test_an_interruption_keeps_what_is_known_and_ends_what_runs(
    question: ScriptQuestion, publish: Publish, tmp_path: Path
) -> None:
    publish("1.1", "import time\n\ndef run(): time.sleep(600)\n")

    def interrupt(line: str) -> None:
        if line.startswith("tinylib 1.4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_script_bisection(question, tmp_path / "answers", interrupt, jobs=2)
    assert [answer.version for answer in read_answers(tmp_path / "answers/answers.jsonl")] == ["1.4"]
    assert copies(tmp_path) == []


@pytest.mark.slow
def test_a_killed_bisection_goes_on_where_it_was(question: ScriptQuestion, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    bisect_until_killed(run_script_bisection, question, folder, jobs=1)
    kept = [answer.version for answer in read_answers(folder / "answers.jsonl")]
    assert "1.4" in kept
    again = run_script_bisection(question, folder, lambda _: None)
    assert again.change == Boundary(2, 0, (1,))
    answers = [answer.version for answer in read_answers(folder / "answers.jsonl")]
    assert len(answers) == len(set(answers)), "no release was asked twice"
    assert copies(tmp_path) == []
