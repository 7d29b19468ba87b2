"""`repros compare` on real trainings: what it names, what it takes for equal, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.cli import main
from tests.diagnose.compare.changed import difference_of_changed
from tests.transcript import mask
from tools.measure.compare_pairs import read_kept, read_pairs

TRAIN = Path(__file__).parent / "toys/train.py"

pytestmark = pytest.mark.slow

Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(
    current_python: Path,
    warm_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Compare:
    """Return a function that compares two trainings of `toys/train.py`, given by their words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def run(first: str, second: str, *options: str, code: int) -> dict[str, Any]:
        # What is forked from one process begins with the same random numbers.
        python = str(current_python if "--ranks" in options or "seeded=no" in first else warm_python)
        commands = [word for words in (first, second) for word in ("--", python, str(TRAIN), *words.split())]
        assert main(["compare", "--json", *options, *commands]) == code, capfd.readouterr().err
        said: dict[str, Any] = json.loads(capfd.readouterr().out)
        return said

    return run


def test_the_same_program_has_the_same_bits(compare: Compare) -> None:
    said = compare("", "", "--exact", code=0)
    assert (said["equal"], said["steps"], said["same_bits"]) == (True, 8, 8)


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("first", "second", "options", "step", "what"),
    [
        ("", "lr=0.02", (), 1, "learning rate of 20 parameters"),
        ("optimizer=sgd", "", (), 1, "optimizer"),
        ("", "accumulate=4 undivided=yes", (), 1, "loss"),
        ("", "norm=batch", (), 1, "output of module blocks.0.norm"),
        ("clip=loop", "", (), 1, "gradient of blocks.0.norm.weight after clipping"),
        ("seeded=no", "seeded=no", (), 1, "blocks.0.layers.0.weight"),
        ("drop=0.2", "drop=0.1", (), 1, "output of module blocks.0.drop"),
    ],
)
def test_the_first_difference_is_that_which_was_made(
    compare: Compare, first: str, second: str, options: tuple[str, ...], step: int, what: str
) -> None:
    found = compare(first, second, *options, code=1)["difference"]
    assert (found["step"], found["what"].endswith(what)) == (step, True), found


@pytest.mark.long
def test_a_program_without_a_seed_gets_advice(compare: Compare) -> None:
    (note,) = compare("seeded=no", "seeded=no", code=1)["notes"]
    assert "--seed N" in note
    assert compare("seeded=no", "seeded=no", "--seed", "3", code=0)["notes"] == []


def test_a_resume_that_forgets_the_optimizer_is_named(compare: Compare, tmp_path: Path) -> None:
    kept = f"file={tmp_path / 'kept.pt'}"
    assert compare("", f"save=3 {kept}", code=0)["equal"]
    resumed = compare("", f"resume=3 {kept}", "--resume-at", "3", code=0)
    assert (resumed["equal"], resumed["steps"], resumed["offset"]) == (True, 5, 3)
    found = compare("", f"resume=3 {kept} forget=optimizer", "--resume-at", "3", code=1)["difference"]
    assert (found["step"], found["stage"]) == (4, "learning rate")


def test_two_ranks_with_the_doubled_batch_are_equal_to_one(compare: Compare) -> None:
    said = compare("ranks=ddp", "ranks=ddp", "--ranks", "1,2", code=0)
    assert (said["steps"], said["same_bits"]) == (8, 0)
    assert said["largest"]["relative"] < said["largest"]["allowed"]


SHARES = TRAIN.parent / "shares.py"


@pytest.mark.long(keep=2)  # the first run is repeated for both losses
@pytest.mark.parametrize(
    ("word", "stage", "notes"),
    [
        (
            "loss=divided",
            "loss",
            ["the loss is 1/2 of the first run's", "all 4 gradients are 1/2 of", "the first run was repeated"],
        ),
        ("loss=whole", None, ["the first run was repeated with 2 times"]),
        ("batches=by_hand", "batch", ["give the first run 2 times its batch size"]),
    ],
)
def test_a_rank_with_a_fixed_batch_is_compared_with_larger_batches(
    word: str,
    stage: str | None,
    notes: list[str],
    current_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code = main(["compare", "--json", "--ranks", "1,2", "--", str(current_python), str(SHARES), word])
    said = json.loads(capfd.readouterr().out)
    assert code == (stage is not None)
    assert (said["difference"] or {"stage": None})["stage"] == stage
    assert [part in note for part, note in zip(notes, said["notes"], strict=True)] == [True] * len(notes)


def test_a_clipping_of_other_parameters_shows_after_it(compare: Compare) -> None:
    said = compare("clip=norm", "clip=other", code=1)
    assert (said["difference"]["stage"], said["difference"]["step"]) == ("gradient after clipping", 1)
    assert "20 gradients before clipping" in said["equal_in_step"]
    assert re.fullmatch(r"all 20 gradients are [\d.]+ times the first run's", said["notes"][0])


@pytest.mark.long
def test_ranks_that_are_left_alone_differ(compare: Compare) -> None:
    found = compare("", "ranks=none", "--ranks", "1,2", code=1)["difference"]
    assert (found["stage"], found["rank"]) == ("gradient", "rank 0")


def test_a_validation_in_training_mode_is_named_and_so_is_the_step_that_it_changes(compare: Compare) -> None:
    said = compare("drop=0.2 evaluate=yes", "drop=0.2 evaluate=yes mode=train", code=1)
    found = said["difference"]
    assert (found["step"], found["kind"], found["what"]) == (1, "evaluation", "output of module blocks.0.drop")
    assert ["step 2: output of module blocks.0.drop" in note for note in said["notes"]] == [True]


@pytest.mark.long
def test_validations_shift_no_step(compare: Compare) -> None:
    said = compare("evaluate=yes", "", code=0)
    assert (said["steps"], said["evaluations"]) == (8, 0)
    assert ["step 1 and 7 more" in note for note in said["notes"]] == [True]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("program", "kind", "what", "values"),
    [
        ("loaded", "end", "learning rate of 4 parameters", ("0.1", "0.5")),
        ("buffers", "end", "buffer scale", ("sum 1", "sum 2")),
        ("frozen", "end", "parameters ", None),
        ("merged", "evaluation", "output of module layers.2", None),
        ("second", "evaluation", "parameter layers.2.weight (2)", None),
        ("unused", "evaluation", "batch: input of Net: 4 of 4 rows", None),
        ("last", "evaluation", "batch: input of Net: 4 of 4 rows", None),
        ("loader", "evaluation", "batch: rows of the loaders: 4 rows against 1 rows", ("4 rows", "1 rows")),
        ("score", "evaluation", "output of BinaryF1Score.compute()", ("sum 0.666666687", "sum 0")),
    ],
)
def test_what_no_step_follows_is_compared(
    warm_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    program: str,
    kind: str,
    what: str,
    values: tuple[str, str] | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(warm_python), str(TRAIN.with_name("states.py")), program]
    found = difference_of_changed(words, capfd)
    assert found["kind"] == kind
    assert found["what"].startswith(what)
    assert values is None or (found["first"], found["second"]) == values


def test_a_step_by_which_a_helper_makes_the_state_of_an_optimizer_is_no_step_of_the_program(
    warm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(warm_python), str(TRAIN.with_name("states.py")), "prepared"]
    code = main(["compare", "--json", "--", *words, "--", *words, "changed"])
    said = json.loads(capfd.readouterr().out)
    assert (code, said["difference"], said["steps"]) == (0, None, 2)


def test_the_terminal_gets_the_answer_and_both_values(
    warm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program = ["--", str(warm_python), str(TRAIN)]
    assert main(["compare", "--steps", "2", *program, *program, "lr=0.5"]) == 1
    assert capfd.readouterr().out.splitlines()[1:3] == ["first     0.01", "second    0.5"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--", "python", "--"],
        ["--ranks", "1,0", "--", "python"],
        ["--ranks", "2", "--", "python"],
        ["--stack", "current,current", "--", "/usr/bin/python3", "x.py"],
        ["--", "no-such-program"],
        ["--", "true"],
    ],
)
def test_a_request_that_cannot_be_met_is_refused(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    sentences: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *arguments]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert re.sub(r"\S*\.repros/\S+", "FOLDER", mask(said, here=tmp_path)) == sentences


def test_a_program_that_trains_nothing_is_refused(
    current_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "--", str(current_python), "-c", "import torch"]) == 2
    assert capfd.readouterr().err.splitlines()[-1].startswith("repros: ")


def test_every_pair_that_is_equal_by_design_is_kept_and_equal() -> None:
    kept = read_kept()
    assert list(kept) == [pair.name for pair in read_pairs()]
    assert [name for name, line in kept.items() if not line["equal"]] == []
    assert len(kept) >= 20


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("kind", "says"), [("pipeline", "as in a pipeline"), ("tensor", "tensor parallelism, or a loader")]
)
def test_ranks_that_share_a_model_are_not_compared(
    kind: str,
    says: str,
    current_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code = main(["compare", "--ranks", "1,2", "--", str(current_python), str(SHARES.with_name("parallel.py")), kind])
    assert (code, says in capfd.readouterr().err) == (2, True)


def test_a_run_that_a_signal_ended_is_named_by_it(
    warm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    killed = tmp_path / "killed.py"
    killed.write_text(f"{TRAIN.with_name('states.py').read_text('utf-8')}    import os\n    os.kill(os.getpid(), 9)\n")
    words = [str(warm_python), str(killed), "buffers"]
    main(["compare", "--", *words, "--", *words])
    assert "the first run was ended by SIGKILL; its steps" in capfd.readouterr().err


def test_rows_in_the_same_place_are_told_apart(
    warm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = difference_of_changed([str(warm_python), str(TRAIN.with_name("states.py")), "last"], capfd)
    assert (found["first"], found["second"]) == (
        "row 1 (sum 3), row 2 (sum 12), row 3 (sum 21), row 4 (sum 30)",
        "row 1 (sum 6), row 2 (sum 15), row 3 (sum 24), row 4 (sum 33)",
    )
