"""`repros bisect` with what a program prints, with a command, with nightly releases; and what it refuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.scripts.bisect.scripts import Bisect, Publish
from tests.scripts.bisect.tiny_question import FAILS, FINE
from tests.tiny_stack import write_wheel

PRINTS = "def run(): print({!r})\n"


@pytest.mark.slow
def test_a_number_is_compared_within_its_last_decimal(bisect: Bisect, publish: Publish) -> None:
    """1.2 prints neither, 1.3 the second one after all; whatever is raised after it changes nothing."""
    publish("1.1", PRINTS.format("epoch 1 loss: 2.04"))
    publish("1.2", PRINTS.format("epoch 1 loss: 2.2"))
    publish("1.3", "def run():\n    print('epoch 1 loss: 2.34')\n    raise KeyError('later')\n")
    publish("1.4", PRINTS.format("epoch 1 loss: 2.26"))
    words = ("train.py", "--package", "tinylib", "--to", "1.4", "--good", "loss 2.0", "--bad", "loss 2.3", "--json")
    ended = bisect(*words)
    assert ended.code == 0, ended.err
    assert ended.json["says"] == [
        "good 'loss 2.0' with tinylib 1.1, bad 'loss 2.3' from 1.3 on.",
        "Neither of the two with 1.2: clean; --from 1.2 or --to 1.2 bisects it.",
    ]
    assert ended.json["releases"][2]["why"] == "2 x bad 'loss 2.3', then KeyError: 'later'"
    # With one of them alone, the other end is what it is; and a wider tolerance holds 1.2, too.
    wider = bisect(*words[:5], "--bad", "loss 2.3", "--tolerance", "0.1", "--json")
    assert wider.json["says"] == ["clean with tinylib 1.1, bad 'loss 2.3' from 1.2 on."]


@pytest.mark.slow
def test_an_end_that_prints_both_is_refused(bisect: Bisect, publish: Publish) -> None:
    publish("1.4", PRINTS.format("warming up: fine; then nan"))
    ended = bisect("train.py", "--package", "tinylib", "--to", "1.4", "--good", "fine", "--bad", "nan")
    assert ended.code == 2
    assert ended.err.splitlines()[-1] == (
        "repros: the output with tinylib 1.4 matches both --good and --bad; expected two texts that exclude each other."
    )


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
    assert ended.json["says"] == [
        "ValueError: as documented with tinylib 1.4, clean from 1.6 on.",
        f"No answer between them: 1.5 ({_shortened(ended.json['releases'][2]['why'])}).",
    ]
    assert (here / "data/words.txt").read_text() == "some words"
    module = bisect(*words[:9], "-m", "own", *words[-2:])
    assert module.json["change"] == ended.json["change"]


def _shortened(why: str) -> str:
    why = why.removesuffix(".")
    return why if len(why) <= 240 else f"{why[:240]} [...]"


@pytest.mark.slow
def test_what_the_environment_lacks_is_refused(bisect: Bisect) -> None:
    Path("train.py").write_text("import tinylib, fastai\n")
    lacks = "repros: stack tiny lacks fastai, which train.py needs; name another with --stack."
    assert bisect("train.py", "--package", "tinylib").err.splitlines()[-1] == lacks
    program = bisect("--package", "tinylib", "--", "ffmpeg", "-version")
    assert program.code == 2
    assert program.err.splitlines()[-1] == (
        "repros: 'ffmpeg' is not installed in the environment; begin with python, torchrun or another of its programs."
    )


HELP = " (try 'repros bisect --help')"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", f"Missing argument 'ID', SCRIPT or -- COMMAND.{HELP}"),
        ("train.py", "Missing option '--package', the package to bisect; train.py imports tinylib."),
        ("-- python train.py", "Missing option '--package', the package to bisect."),
        (
            "gone.py --package tinylib",
            "gone.py cannot be read (No such file or directory); expected a Python script.",
        ),
        (
            "train.py --package tinylib --from 0.9",
            "tinylib 0.9 cannot be tried here; expected a release from 1.1 to 1.7.",
        ),
        (
            "train.py --package tinylib --from 1.4 --to 1.4",
            "expected at least two releases of tinylib for Python PY, and found 1.4.",
        ),
        (
            "--package tinylib -- ./train.py",
            "'./train.py' is not installed in the environment; name the program that runs it: -- python ./train.py",
        ),
        ("--package tinylib --", "there is no command after --; expected one such as: -- python train.py"),
        ("train.py --package tinylib --variant fixed", "--variant is for a failure of the catalogue."),
        (
            "RPR-0001 --timeout 9",
            "--timeout is for a script or a command, and RPR-0001 is a failure of the catalogue.",
        ),
        ("RPR-0001 -- 3", "RPR-0001 takes no words after --; expected a script, or only a command."),
        (
            "train.py --package tinylib --good loss --bad lossless",
            "an output may hold --good 'loss' and --bad 'lossless' at once; expected two that exclude each other.",
        ),
        ("train", "unknown repro 'train'"),
    ],
)
def test_refusals(bisect: Bisect, words: str, problem: str) -> None:
    ended = bisect(*words.split())
    assert (ended.code, ended.out) == (2, "")
    expected = problem.replace("PY", f"{sys.version_info.major}.{sys.version_info.minor}")
    assert ended.err.removesuffix(f"{HELP}\n").rstrip("\n").startswith(f"repros: {expected.removesuffix(HELP)}")


def test_a_dry_run_runs_nothing(bisect: Bisect) -> None:
    ended = bisect("train.py", "--package", "tinylib", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    *steps, cost = ended.out.splitlines()
    assert steps == [
        "7 releases of tinylib on stack tiny, from 1.1 to 1.7",
        "1. 1.1 and 1.7, or the nearest releases that give an answer: what each shows",
        "2. where it changes between them",
    ]
    assert cost == ("at most 5 releases, plus those without an answer and those of further jobs; 2 to 3 runs of each")
