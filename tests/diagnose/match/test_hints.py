"""`match.toml`: the evidence for a failure in pasted logs, in addition to the scripts of a catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.diagnose.match import match_log
from repros.diagnose.match.hint_files import hints_of, read_hints
from repros.diagnose.match.hints import NAME, Hints
from repros.diagnose.match.log import decode_lines
from repros.engine.catalogue import load
from repros.model.errors import ReprosError
from repros.model.settings import CATALOGUE
from tests.factories import VALID

EVERY = """\
[RPR-0001]
texts = ["no backend type"]
common_texts = ["two devices"]
other_texts = ["which is output"]
symptoms = ["a warning of the library"]
special_cases = ["RPR-0002"]
elsewhere = "the failure is DDP's own"
own_message = "It looks like"
calls = ["optim:step"]
words = ["lr_find"]
other_causes = ["a load of the program: look at torch.load"]
usual_cause = true
common_message = true
torch_message = true
"""


@pytest.mark.parametrize("family", [".", "family"])
def test_a_script_has_the_hints_of_its_catalogue(tmp_path: Path, family: str) -> None:
    folder = tmp_path / family
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(VALID, "utf-8")
    (tmp_path / NAME).write_text(EVERY, "utf-8")
    (repro,) = load([tmp_path])
    assert hints_of(repro) == Hints(
        texts=("no backend type",),
        common_texts=("two devices",),
        other_texts=("which is output",),
        symptoms=("a warning of the library",),
        special_cases=("RPR-0002",),
        elsewhere="the failure is DDP's own",
        own_message="It looks like",
        calls=("optim:step",),
        words=("lr_find",),
        other_causes=("a load of the program: look at torch.load",),
        usual_cause=True,
        common_message=True,
        torch_message=True,
    )


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(VALID, "utf-8")
    (repro,) = load([tmp_path])
    assert hints_of(repro) == Hints()


def test_a_private_catalogue_s_hints_are_used(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(VALID, "utf-8")
    log = decode_lines(b"RuntimeError: the other wording of that message\n")
    assert not match_log(log, load([tmp_path])).candidates
    other = tmp_path / "other"
    other.mkdir()
    (other / "script.py").write_text(VALID, "utf-8")
    (other / NAME).write_text('[RPR-0001]\ntexts = ["the other wording of that message"]\n', "utf-8")
    (candidate,) = match_log(log, load([other])).candidates
    assert candidate.repro.id == "RPR-0001"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('words = ["LoRA"]', "words = ['LoRA'] in [RPR-0001] of {file}"),
        ("usual_cause = 1", "usual_cause = 1 in [RPR-0001] of {file}"),
        ('texts = ["a b"]', "texts = ['a b'] in [RPR-0001] of {file}"),
        ('text = ["abcdef"]', "'text' in [RPR-0001] of {file}"),
        ("words = [", "{file} "),
    ],
)
def test_an_invalid_one_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / NAME
    file.write_text(f"[RPR-0001]\n{text}\n", "utf-8")
    with pytest.raises(ReprosError) as refused:
        read_hints(file)
    assert place.format(file=file) in str(refused.value)


def test_a_value_in_the_place_of_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("RPR-0001 = true\n", "utf-8")
    with pytest.raises(ReprosError, match=r"\[RPR-0001\] of .*match\.toml"):
        read_hints(tmp_path / NAME)


@pytest.mark.of_all_scripts
def test_every_table_of_the_package_s_own_is_of_a_failure_that_it_has() -> None:
    hints = read_hints(CATALOGUE / NAME)
    assert hints
    assert hints.keys() <= {repro.id for repro in load()}
    assert all(hint != Hints() for hint in hints.values())
