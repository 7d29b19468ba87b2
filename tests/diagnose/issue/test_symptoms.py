"""What an issue without an error reports: its symptom and the change of release."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.symptoms import Upgrade, find_symptom, find_upgrade, load_symptoms, rank_by_words
from tests.package_catalogue import load

SENTENCES = {
    "resume": "After resuming from a checkpoint the learning rate is wrong.",
    "accumulation": "The grad norm with gradient accumulation of 4 is four times as large.",
    "first-nan": "From step 200 on the loss is NaN.",
    "hang": "At the end of the first epoch rank 1 hangs.",
    "memory": "After some epochs CUDA runs out of memory.",
    "ranks": "With DDP on 2 GPUs the parameters of the ranks differ.",
    "checkpoint-weights": "The saved adapter has the wrong weights.",
    "scheduler": "The learning rate stays constant, the scheduler is ignored.",
    "metrics": "The validation accuracy is always zero.",
    "data": "Every worker yields the same batches.",
    "not-learning": "The loss does not decrease, whatever the optimizer.",
    "compiled": "With torch.compile the output is another one.",
    "loss-changed": "The loss is three times higher than in the paper.",
}


def test_each_symptom_is_found_by_its_words() -> None:
    found = {name: find_symptom(read_issue(f"# A question\n\n{text}\n")) for name, text in SENTENCES.items()}
    assert {name: one and one.symptom.name for name, one in found.items()} == {name: name for name in SENTENCES}
    assert {symptom.name for symptom in load_symptoms()} == SENTENCES.keys()
    assert all(one and one.sentence.rstrip(".") == SENTENCES[name].rstrip(".") for name, one in found.items())


def test_the_title_decides_before_the_text() -> None:
    issue = read_issue("# The run hangs\n\nBefore that the loss was NaN.\n")
    found = find_symptom(issue)
    assert found
    assert (found.symptom.name, found.sentence) == ("hang", "The run hangs")
    assert find_symptom(read_issue("# A question\n\nHow do I set the seed?\n")) is None


def test_the_failures_of_a_symptom_are_in_the_catalogue_and_not_twice() -> None:
    known = {repro.id for repro in load()}
    for symptom in load_symptoms():
        assert {*symptom.ids} <= known
        assert len({*symptom.ids}) == len(symptom.ids)
        assert symptom.check
        assert symptom.next


@pytest.mark.parametrize(
    ("text", "upgrade"),
    [
        ("Loss rises after upgrading transformers from 4.47.1 to 4.48.0", Upgrade("transformers", "4.47.1", "4.48.0")),
        ("It worked with PyTorch 2.5.1 and broke: torch 2.5.1 -> 2.6.0", Upgrade("torch", "2.5.1", "2.6.0")),
        ("Regression: trl 0.15.0 vs 0.14.0", Upgrade("trl", "0.14.0", "0.15.0")),
        ("Lightning 2.5.5 breaks checkpoint reuse", Upgrade("lightning", "", "2.5.5")),
        ("I use torch 2.6.0 and python 3.11.4", None),
        ("torch 2.6.0, transformers 4.48.0", None),
    ],
)
def test_a_change_of_release(text: str, upgrade: Upgrade | None) -> None:
    assert find_upgrade(read_issue(f"# {text}\n\nThat is all.\n")) == upgrade


def test_failures_with_the_words_of_the_text_come_first() -> None:
    failures = [("RPR-0001", "The finder leaves results"), ("RPR-0002", "A sampler repeats its order")]
    assert [*rank_by_words(failures, "the sampler and the finder have one order")] == failures[::-1]
    assert [*rank_by_words(failures, "the loss is wrong after the first step")] == []
