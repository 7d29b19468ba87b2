"""The kinds of input, recognised by content."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from repros.model.errors import ReprosError
from repros.scripts.triage.kind import InputKind, kind_of_text, recognise
from tests.diagnose.match.golden_logs import GOLDEN
from tests.diagnose.match.hang.made import content, entry, write

INPUTS = Path(__file__).parent / "inputs"
CATALOGUE = Path(__file__).parents[3] / "repros" / "catalogue"
RECORDED = Path(__file__).parents[3] / "pyproject.toml"


def no_stdin() -> bytes:
    raise AssertionError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("device.log", InputKind.LOG),
        ("weights.log", InputKind.LOG),
        ("ranks", InputKind.LOG),
        ("issue.md", InputKind.ISSUE),
        ("issue_with_log.md", InputKind.ISSUE),
        ("scaled.py", InputKind.SCRIPT),
        ("requirements.txt", InputKind.PACKAGES),
    ],
)
def test_a_file_is_recognised_by_its_content(name: str, kind: InputKind, tmp_path: Path) -> None:
    assert recognise([str(INPUTS / name)], no_stdin).kind is kind
    file = INPUTS / name
    if file.is_file():
        (tmp_path / "pasted").write_bytes(file.read_bytes())
        assert recognise([str(tmp_path / "pasted")], no_stdin).kind is kind
        assert kind_of_text(file.read_bytes()) is kind


def test_every_golden_log_is_a_log() -> None:
    logs = sorted(GOLDEN.glob("*.log"))
    assert logs
    assert [log.stem for log in logs if kind_of_text(log.read_bytes()) is not InputKind.LOG] == []


@pytest.mark.parametrize("script", sorted(CATALOGUE.rglob("*.py"))[::20], ids=lambda script: script.stem)
def test_a_script_is_a_script(script: Path) -> None:
    assert kind_of_text(script.read_bytes()) is InputKind.SCRIPT


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["22"], InputKind.ID),
        (["RPR-0022", "rpr-23"], InputKind.ID),
        (["batch", "norm"], InputKind.WORDS),
        (["weights_only"], InputKind.WORDS),
        (["RuntimeError: mat1 and mat2"], InputKind.LOG),
        (["torch.cuda.OutOfMemoryError:", "CUDA", "out", "of", "memory"], InputKind.LOG),
        (["the loss is nan after a resume"], InputKind.LOG),
    ],
)
def test_words(words: list[str], kind: InputKind) -> None:
    assert recognise(words, no_stdin).kind is kind


@pytest.mark.parametrize(
    "words",
    [
        ["RuntimeError: Dataset scripts are no longer supported, but found librispeech.py"],
        ["OSError: weights/tiny has no file named config.json"],
        ["ValueError: no checkpoint is at ./runs/b/checkpoint-40"],
        ["_pickle.UnpicklingError:", "cannot", "read", "model.json"],
    ],
)
def test_a_message_may_end_with_a_files_name(words: list[str]) -> None:
    given = recognise(words, no_stdin)
    assert given.kind is InputKind.LOG
    assert given.documents[0].raw.decode() == " ".join(words)


@pytest.mark.parametrize("words", [["C:/runs/gone.log"], ["errors: gone.log", "x"], ["Errors/OSError:1/gone.log"]])
def test_a_colon_alone_makes_no_message(words: list[str]) -> None:
    with pytest.raises(ReprosError):
        recognise(words, no_stdin)


def test_folders(tmp_path: Path) -> None:
    dumps = write(tmp_path / "dumps", {0: content([entry(1)], {"0": [0, 1]})})
    assert recognise([str(dumps)], no_stdin).dumps == (dumps / "nccl_trace_rank_0",)
    environment = Path(sys.prefix)
    assert recognise([str(environment)], no_stdin).kind is InputKind.ENVIRONMENT
    assert recognise([str(environment / "bin" / "python")], no_stdin).kind is InputKind.ENVIRONMENT
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "uv.lock").write_text("version = 1\n")
    assert recognise([str(tmp_path / "project")], no_stdin).path == tmp_path / "project" / "uv.lock"


def test_logs_and_dumps_of_one_failure_are_one_input(tmp_path: Path) -> None:
    dumps = write(tmp_path / "dumps", {0: content([entry(1)], {"0": [0, 1]})})
    given = recognise([str(INPUTS / "ranks"), str(INPUTS / "device.log"), str(dumps)], no_stdin)
    names = ["ranks/attempt_0/0/stderr.log", "ranks/attempt_0/1/stderr.log", "device.log"]
    assert [document.name for document in given.documents] == [str(INPUTS / name) for name in names]
    assert given.dumps == (dumps / "nccl_trace_rank_0",)


def test_standard_input_is_recognised_too() -> None:
    given = recognise(["-"], (INPUTS / "issue.md").read_bytes)
    assert (given.kind, given.documents[0].path) == (InputKind.ISSUE, None)
    assert recognise([], (INPUTS / "device.log").read_bytes).kind is InputKind.LOG


@pytest.mark.parametrize(
    "words",
    [
        ["gone.log"],
        ["https://github.com/Lightning-AI/pytorch-lightning/issues/20450"],
        ["https://example.org/x"],
        [str(INPUTS / "device.log"), "gone"],
        [str(INPUTS / "device.log"), str(INPUTS / "scaled.py")],
        ["not a file of mine.log", "x"],
    ],
)
def test_what_cannot_be_read_is_refused(words: list[str]) -> None:
    with pytest.raises(ReprosError):
        recognise(words, no_stdin)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReprosError):
        recognise([f"{tmp_path}/"], no_stdin)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# The loss is NaN\n\nFrom step 3 on.\n", InputKind.ISSUE),
        ("# comment of a launcher\nstep 1 loss nan\n", InputKind.LOG),
        ("# A program\n\nimport torch\nprint(1)\n", InputKind.SCRIPT),
    ],
)
def test_a_title_above_prose_is_that_of_an_issue(text: str, kind: InputKind) -> None:
    assert kind_of_text(text.encode()) is kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# Training hangs\nIt waits after the first epoch, and nothing is printed.\n", InputKind.ISSUE),
        ("# What we need\ntorch==2.5.1\nnumpy==2.1.0\n", InputKind.PACKAGES),
        ("# epoch 1\nstep 1 loss 0.5\nstep 2 loss 0.4\n", InputKind.LOG),
        ("# Loss\n| lr | loss |\nIt is worse than in issue #7\n", InputKind.ISSUE),
    ],
)
def test_a_title_with_a_sentence_below_it_is_an_issue(text: str, kind: InputKind) -> None:
    assert kind_of_text(text.encode()) is kind


@pytest.mark.parametrize("part", ["a", "1", "a,", "A.", "a ", "aa bb 1 "])
def test_a_long_line_below_a_title_is_read_in_linear_time(part: str) -> None:
    """In quadratic time, a million characters would take longer than any limit of a test."""
    assert kind_of_text(f"# Weights\n{part * (1_000_000 // len(part))}".encode())
