"""`repros triage`, and `repros WHATEVER`."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import ROOT, Command
from tests.cli.test_match import WAITING
from tests.diagnose.match.golden_logs import GOLDEN
from tests.diagnose.match.hang.made import write
from tests.transcript import refusals, transcript

INPUTS = ROOT / "tests" / "scripts" / "triage" / "inputs"

GIVEN = (
    "weights.log",
    "device.log",
    "ranks",
    "dumps",
    "consequence.log",
    "well.log",
    "issue.md",
    "issue_with_log.md",
    "scaled.py",
    "broken.py",
    "requirements.txt",
    "22",
    "batch norm",
    "weights_only gradient",
    "'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one'",
)
"""One of each kind, and of each end that an answer may have."""


@pytest.fixture
def inputs(here: Path) -> Path:
    """The inputs in the working directory."""
    shutil.copytree(INPUTS, here, dirs_exist_ok=True)
    shutil.copyfile(GOLDEN / "connection-closed-by-peer-alone.log", here / "consequence.log")
    shutil.copyfile(GOLDEN / "all-is-well-hand-2026-07.log", here / "well.log")
    (here / "broken.py").write_text("import torch\nprint 'x'\n")
    write(here / "dumps", WAITING)
    return here


def test_text(repros: Command, inputs: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = transcript(repros, *GIVEN, here=inputs)
    assert snapshot == shown


@pytest.mark.parametrize("given", GIVEN)
def test_an_answer_has_at_most_fifteen_lines(
    repros: Command, inputs: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert inputs.is_dir()
    code, out, err = repros(given.strip("'"))
    assert out.count("\n") <= 15
    assert (code in {0, 1}, err) == (True, "")
    long = [line for line in out.splitlines() if len(line) > 80]
    assert all(line.startswith(("next  ", "          repros ", "or        torch.")) for line in long), long


@pytest.mark.parametrize("given", GIVEN)
def test_json_has_the_same_answer(repros: Command, inputs: Path, given: str) -> None:
    assert inputs.is_dir()
    text_code, text, _ = repros(given.strip("'"))
    code, out, _ = repros(given.strip("'"), "--json")
    answer = json.loads(out)
    assert code == text_code == (answer["certainty"] not in {"certain", "likely"})
    assert answer["title"].split()[0] == text.split()[0]
    assert len(answer["next"]) <= 3
    assert answer["schema"] == 1


def test_the_fix_has_the_words_of_the_log(repros: Command, inputs: Path) -> None:
    assert inputs.is_dir()
    answer = json.loads(repros("weights.log", "--json")[1])
    assert (answer["id"], answer["certainty"]) == ("RPR-0022", "likely")
    assert "torch.serialization.add_safe_globals([omegaconf.dictconfig.DictConfig])" in answer["sections"]["or"]


def test_the_fix_of_a_log_has_no_value_of_the_documented_script(repros: Command, here: Path) -> None:
    (here / "eval.log").write_text(
        "_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed the default value of the "
        "`weights_only` argument in `torch.load` from `False` to `True`.\n"
        "\tWeightsUnpickler error: Unsupported global: GLOBAL mylib.Progress was not an allowed global by default."
    )
    answer = json.loads(repros("eval.log", "--json")[1])
    assert answer["id"] == "RPR-0180"
    assert "torch.serialization.add_safe_globals([mylib.Progress])" in answer["sections"]["or"]
    assert answer["sections"]["fix"] == ["torch.load(..., weights_only=False), for a trusted file"]
    assert "ARGS" not in json.dumps(answer)
    documented = json.loads(repros("RPR-0180", "--json")[1])
    assert "- return torch.load(save(args=ARGS))" in documented["sections"]["fix"]


@pytest.mark.parametrize(
    ("end", "label", "has_error"),
    [
        ("Killed", "error", True),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.", "error", True),
        ("2026-11-28 08:00:00 ERROR shard-0003.tar: not found", "seen", False),
    ],
)
def test_a_log_without_an_exception_says_how_the_program_ended(
    repros: Command, here: Path, end: str, label: str, *, has_error: bool
) -> None:
    (here / "ends.log").write_text(f"step 1 loss 2.0\n{end}\n")
    answer = json.loads(repros("ends.log", "--json")[1])
    assert answer["sections"][label] == [f"line 2: {end}"]
    assert (answer["id"], "check" in answer["sections"]) == (None, True)
    assert answer["certainty"] == ("possible" if has_error else "unknown")
    wrapped = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    (here / "ends.log").write_text(f"step 1 loss 2.0\n{end}\nTraceback (most recent call last):\n{wrapped}\n")
    answer = json.loads(repros("ends.log", "--json")[1])
    assert answer["sections"]["seen"][0].startswith(f"line 2: {end} (")


def test_both_spellings_are_the_same_command(repros: Command, inputs: Path) -> None:
    assert inputs.is_dir()
    assert repros("triage", "device.log") == repros("device.log")


def test_a_pipe(repros: Command, inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = repros("device.log")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((inputs / "device.log").read_bytes())))
    assert repros("-") == expected


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_a_paste_in_a_terminal(repros: Command, inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = repros("device.log")[1]
    monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO((inputs / "device.log").read_bytes())))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = repros()
    assert (code, out, err.count("\n")) == (0, expected, 1)


def test_a_command_is_watched(here: Path) -> None:
    words = [sys.executable, "-m", "repros", "--", sys.executable, "-c", "print(6 * 7); raise SystemExit(5)"]
    done = subprocess.run(
        words, cwd=here, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (5, b"42\n")


def test_search_and_find_are_list(repros: Command) -> None:
    assert repros("search", "batch", "norm") == repros("find", "batch", "norm") == repros("list", "batch", "norm")


@pytest.mark.parametrize(
    ("word", "command"), [("mtach", "match"), ("lst", "list"), ("audti", "audit"), ("shwo", "show")]
)
def test_a_misspelt_command_is_suggested(repros: Command, word: str, command: str) -> None:
    code, out, err = repros(word)
    assert (code, out) == (2, "")
    assert repr(command) in err


def test_a_pasted_sentence_without_an_error_is_searched(repros: Command) -> None:
    assert json.loads(repros("batch norm buffers", "--json")[1])["kind"] == "words"
    assert json.loads(repros("ValueError: batch norm", "--json")[1])["kind"] == "log"


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("training hangs on two GPUs, no error is printed", "Ranks, workers or the launcher wait"),
        ("my loss does not go down", "The training runs, and the model does not learn"),
        ("weights are not updated", "The training runs, and the model does not learn"),
        ("训练卡住 没有报错", "Ranks, workers or the launcher wait"),
    ],
)
def test_words_that_no_failure_has_are_read_as_a_description(repros: Command, words: str, title: str) -> None:
    _, out, _ = repros(words)
    assert out.startswith(title)
    assert "check" in out


def test_words_that_describe_nothing_are_answered_by_the_nearest_failures(repros: Command) -> None:
    code, out, _ = repros("batch norm zebras")
    assert code == 1
    assert out.startswith("No documented failure has all of the words")
    assert "near" in out


def test_a_word_like_a_command_that_failures_have_is_searched(repros: Command) -> None:
    code, out, _ = repros("batch")
    assert code == 0
    assert "RPR-0031" in out


def test_refusals(repros: Command, inputs: Path, snapshot: SnapshotAssertion) -> None:
    (inputs / "empty.log").write_text("")
    (inputs / "binary.log").write_bytes(bytes(range(256)) * 9)
    (inputs / "nothing").mkdir()
    lines = (
        "gone.log",
        "mtach",
        "https://github.com/Lightning-AI/pytorch-lightning/issues/20450",
        "https://example.org/log",
        "device.log gone",
        "device.log scaled.py",
        "./nothing",
        "empty.log",
        "binary.log",
        "RPR-9999",
    )
    assert snapshot == refusals(repros, *lines, here=inputs)
