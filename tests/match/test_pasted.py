"""Messages that are pasted without an exception's line, or in part, and the words that decide between repros."""

from __future__ import annotations

import pytest

from repros.engine.catalogue import load
from repros.match import Confidence, LogMatch, match_log
from repros.match.log import MOST_PASTED_LINES, decode_lines
from repros.match.reasons import confidence_reason
from repros.match.text import format_match

CATALOGUE = tuple(load())
READY_TWICE = "Parameter at index 55 with name lora_B.default.weight has been marked as ready twice."
SKIPPED = "Skipping the `training_step` by returning None in distributed training is not supported."


def found(text: str) -> LogMatch:
    return match_log(decode_lines(text.encode()), CATALOGUE)


def ids(text: str) -> list[str]:
    return [candidate.repro.id for candidate in found(text).candidates]


@pytest.mark.parametrize(
    "text",
    [
        SKIPPED,
        f"`{SKIPPED}`",
        f"I get this since I use two GPUs: {SKIPPED} What can I do?",
        SKIPPED.replace(" by ", "\nby "),
        f"Something before.\n\n{SKIPPED}\n\nSomething behind.",
    ],
)
def test_a_message_without_an_exceptions_line_is_possible(text: str) -> None:
    (candidate,) = found(text).candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0025", Confidence.POSSIBLE)
    assert "the log has no line with an exception's class" in confidence_reason(candidate)
    shown = format_match(found(text), 100).plain
    assert "RuntimeError" not in shown
    assert "time more" not in shown


def test_a_message_that_a_sentence_only_quotes_is_not_found() -> None:
    assert ids(f'I wonder whether the sentence "{SKIPPED}" could be improved.') == []


def test_a_long_log_is_not_searched_for_messages() -> None:
    assert ids("step done\n" * MOST_PASTED_LINES + SKIPPED) == []


def test_a_later_part_of_a_message_is_possible_and_words_in_the_log_decide() -> None:
    assert ids(f"RuntimeError: {READY_TWICE}") == ["RPR-0033", "RPR-0032"]
    two = "AdamW, torchmetrics/ and no other word\nRuntimeError: No backend type associated with device type cpu"
    assert ids(two)[0] == "RPR-0020"
    assert ids(two.replace("torchmetrics/", "lr_find"))[0] == "RPR-0001"


def test_without_a_word_the_usual_cause_is_first() -> None:
    assert ids("RuntimeError: Expected to mark a variable ready only once.") == ["RPR-0033", "RPR-0032"]


def test_a_message_of_two_repros_is_one_sighting_of_each() -> None:
    for candidate in found(READY_TWICE).candidates:
        assert len(candidate.sightings) == 1


def test_a_message_with_many_causes_is_at_most_possible() -> None:
    text = (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3, 32, 3, 3]] is at version 2; expected version 1 instead."
    )
    (candidate,) = found(text).candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0031", Confidence.POSSIBLE)
    assert "this message has many other causes" in confidence_reason(candidate)
