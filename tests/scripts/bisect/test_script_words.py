"""`repros bisect` with what a program prints, with a command, with nightly releases; and what it refuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.scripts.bisect.scripts import Bisect, Publish
from tests.scripts.bisect.tiny_question import FAILS, FINE
from tests.tiny_stack import write_wheel

PRINTS = "def run(): print({!r})\n"


@pytest.mark.slow
def test_a_number_is_compared_within_its_last_decimal(
    bisect: Bisect, publish: Publish, sentences: SnapshotAssertion
) -> None:
    """1.2 prints neither, 1.3 the second one after all; whatever is raised after it changes nothing."""
    publish("1.1", PRINTS.format("epoch 1 loss: 2.04"))
    publish("1.2", PRINTS.format("epoch 1 loss: 2.2"))
    publish("1.3", "def run():\n    print('epoch 1 loss: 2.34')\n    raise KeyError('later')\n")
    publish("1.4", PRINTS.format("epoch 1 loss: 2.26"))
    words = ("train.py", "--package", "tinylib", "--to", "1.4", "--good", "loss 2.0", "--bad", "loss 2.3", "--json")
    ended = bisect(*words)
    assert ended.code == 0, ended.err
    assert ended.json["change"] == {"until": "1.1", "since": "1.3", "unknown": ["1.2"]}
    assert ended.json["says"] == sentences
    assert ended.json["releases"][2]["why"] == "2 x bad 'loss 2.3', then KeyError: 'later'"
    # With one of them alone, the other end is what it is; and a wider tolerance holds 1.2, too.
    wider = bisect(*words[:5], "--bad", "loss 2.3", "--tolerance", "0.1", "--json")
    assert wider.json["change"] == {"until": "1.1", "since": "1.2", "unknown": []}


@pytest.mark.slow
def test_an_end_that_prints_both_is_refused(bisect: Bisect, publish: Publish, sentences: SnapshotAssertion) -> None:
    publish("1.4", PRINTS.format("warming up: fine; then nan"))
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.4", "--good", "fine", "--bad", "nan")
    assert ended.code == 2
    assert ended.err.splitlines()[-1] == sentences


@pytest.mark.slow
def test_nightly_releases_of_another_index(bisect: Bisect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is a folder with pages in HTML; what it has is neither on the other index nor dated."""
    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    before = os.environ.get("UV_INDEX")
    page = tmp_path / "nightly/tinylib"
    page.mkdir(parents=True)
    for number, day in enumerate(("20260601", "20260602", "20260603", "20260604")):
        write_wheel(page, "tinylib", FAILS if number > 1 else FINE, f"1.8.dev{day}")
    files = sorted(file.name for file in page.iterdir())
    page.joinpath("index.html").write_text("".join(f"<a href='{name}'>{name}</a>\n" for name in files))
    words = ("train.py", "--package", "tinylib", "--from", "1.7", "--index", page.parent.as_uri(), "--json")
    ended = bisect(*words)
    assert ended.code == 0, ended.err
    assert ended.json["candidates"] == ["1.7", *(f"1.8.dev2026060{day}" for day in (1, 2, 3, 4))]
    assert ended.json["change"] == {"until": "1.8.dev20260602", "since": "1.8.dev20260603", "unknown": []}
    assert os.environ.get("UV_INDEX") == before


COMMAND = """\
import pathlib, sys
import tinylib
assert sys.argv[1:] == ["--epochs", "2"], sys.argv
assert sys.prefix != sys.base_prefix
assert pathlib.Path("data/words.txt").read_text() == "some words"
assert not pathlib.Path(".hidden").exists()
pathlib.Path("data/words.txt").write_text("others")
print("ran")
tinylib.run()
"""


@pytest.mark.slow
def test_a_command_runs_in_a_copy_of_its_folder_with_the_environments_python(bisect: Bisect, here: Path) -> None:
    (here / "data").mkdir()
    (here / "data/words.txt").write_text("some words")
    (here / ".hidden").touch()
    (here / "own.py").write_text(COMMAND)
    words = (
        "--package",
        "tinylib",
        "--from",
        "1.3",
        "--to",
        "1.6",
        "--json",
        "--",
        "python",
        "own.py",
        "--epochs",
        "2",
    )
    ended = bisect(*words)
    assert ended.code == 0, ended.err
    assert ended.json["script"] == "python own.py --epochs 2"
    assert ended.json["change"] == {"until": "1.4", "since": "1.6", "unknown": ["1.5"]}
    assert _shortened(ended.json["releases"][2]["why"]) in ended.json["says"][1]
    assert (here / "data/words.txt").read_text() == "some words"
    module = bisect(*words[:9], "-m", "own", *words[-2:])
    assert module.json["change"] == ended.json["change"]


def _shortened(why: str) -> str:
    why = why.removesuffix(".")
    return why if len(why) <= 240 else f"{why[:240]} [...]"


@pytest.mark.slow
def test_what_the_environment_lacks_is_refused(bisect: Bisect, sentences: SnapshotAssertion) -> None:
    Path("train.py").write_text("import tinylib, fastai\n")
    assert bisect("train.py", "--package", "tinylib").err.splitlines()[-1] == sentences
    program = bisect("--package", "tinylib", "--", "ffmpeg", "-version")
    assert program.code == 2
    assert program.err.splitlines()[-1] == sentences


@pytest.mark.parametrize(
    "words",
    [
        "",
        "train.py",
        "-- python train.py",
        "train.py --package tinylib --from 1.4 --to 1.4",
        "--package tinylib -- ./train.py",
        "--package tinylib --",
        "train.py --package tinylib --variant fixed",
        "RPR-0001 --timeout 9",
        "RPR-0001 -- 3",
        "train.py --package tinylib --good loss --bad lossless",
    ],
)
def test_refusals(bisect: Bisect, words: str, sentences: SnapshotAssertion) -> None:
    ended = bisect(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.replace(f"Python {sys.version_info.major}.{sys.version_info.minor}", "Python N") == sentences


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("gone.py --package tinylib", "gone.py"),
        ("train.py --package tinylib --from 0.9", "tinylib 0.9"),
        ("train", "'train'"),
    ],
)
def test_a_name_of_nothing_is_refused(bisect: Bisect, words: str, place: str) -> None:
    ended = bisect(*words.split())
    assert (ended.code, ended.out, place in ended.err) == (2, "", True)


def test_a_dry_run_runs_nothing(bisect: Bisect, sentences: SnapshotAssertion) -> None:
    ended = bisect("train.py", "--package", "tinylib", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == sentences


def test_the_script_of_an_issue_is_bisected(bisect: Bisect, here: Path) -> None:
    (here / "issue.md").write_text("```python\nimport tinylib\n\ntinylib.run()\n```\n")
    ended = bisect("--from-issue", "issue.md", "--package", "tinylib", "--from", "1.4", "--to", "1.6", "--runs", "1")
    assert ended.code == 0, ended.err
    assert "ValueError: as documented with tinylib 1.4, clean from 1.6 on" in ended.out
    assert bisect("train.py", "--from-issue", "issue.md", "--package", "tinylib").code == 2
    refused = bisect("RPR-0001", "--from-issue", "issue.md")
    assert "--from-issue is for a script or a command" in refused.err
