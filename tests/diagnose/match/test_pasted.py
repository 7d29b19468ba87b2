"""Messages that are pasted without an exception's line, or in part, and the words that decide between repros."""

from __future__ import annotations

import pytest

from repros.diagnose.match import Confidence, LogMatch, match_log
from repros.diagnose.match.hint_files import hints_of
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.text import format_match
from tests.package_catalogue import load_index

pytestmark = pytest.mark.of_all_scripts

READY_TWICE = "Parameter at index 55 with name lora_B.default.weight has been marked as ready twice."
SKIPPED = "Skipping the `training_step` by returning None in distributed training is not supported."


def found(text: str) -> LogMatch:
    return match_log(decode_lines(text.encode()), load_index())


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
    assert not candidate.occurrences[0].link.has_class
    assert "RuntimeError" not in format_match(found(text), 100).plain


def test_a_message_that_a_sentence_only_quotes_is_not_found() -> None:
    assert ids(f'I wonder whether the sentence "{SKIPPED}" could be improved.') == []


@pytest.mark.parametrize("torn", [SKIPPED, SKIPPED.replace(" by ", "\nby "), SKIPPED.replace(" in ", " \n     in ")])
@pytest.mark.parametrize(("before", "after"), [(5_000, 0), (0, 5_000), (63, 5_000)])
def test_a_long_log_is_searched_for_messages(torn: str, before: int, after: int) -> None:
    text = "step done\n" * before + torn + "\n" + "step done\n" * after
    (candidate,) = found(text).candidates
    assert candidate.repro.id == "RPR-0025"
    if torn == SKIPPED:
        assert candidate.occurrences[0].link.line == before + 1


def test_a_message_is_found_beside_an_exception_of_another_failure() -> None:
    two = f"{SKIPPED}\n\nRuntimeError: Expected to mark a variable ready only once."
    assert sorted(ids(two)) == ["RPR-0025", "RPR-0032", "RPR-0033"]


def test_a_later_part_of_a_message_is_possible_and_words_in_the_log_decide() -> None:
    assert ids(f"RuntimeError: {READY_TWICE}") == ["RPR-0033", "RPR-0032"]
    two = "AdamW, torchmetrics/ and no other word\nRuntimeError: No backend type associated with device type cpu"
    assert ids(two)[0] == "RPR-0020"
    assert ids(two.replace("torchmetrics/", "lr_find"))[0] == "RPR-0001"


def test_without_a_word_the_usual_cause_is_first() -> None:
    assert ids("RuntimeError: Expected to mark a variable ready only once.") == ["RPR-0033", "RPR-0032"]


def test_a_message_of_two_repros_is_one_sighting_of_each() -> None:
    for candidate in found(READY_TWICE).candidates:
        assert len(candidate.occurrences) == 1


def test_a_message_with_many_causes_is_at_most_possible() -> None:
    text = (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3, 32, 3, 3]] is at version 2; expected version 1 instead."
    )
    (candidate,) = found(text).candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0031", Confidence.POSSIBLE)
    assert hints_of(candidate.repro).common_message


@pytest.mark.parametrize(
    "text",
    [
        (
            "**RuntimeError**: one of the variables needed for gradient computation has been **modified** by an "
            "inplace operation: [torch.cuda.FloatTensor [256]] is at version 5; expected version 4 instead."
        ),
        (
            "RuntimeError: one of the variables needed for gradient compu\ntation has been modified by an "
            "inplace operation"
        ),
        "one of the variables needed for gradient\\ncomputation has been modified by an inplace operation",
    ],
)
def test_markdown_torn_lines_and_escapes_hide_no_message(text: str) -> None:
    assert ids(text) == ["RPR-0031"]


def test_entities_of_a_web_page_hide_no_message() -> None:
    assert ids("Can&#39;t pickle local object &#39;add_hook_to_module.&lt;locals&gt;.new_forward&#39;") == ["RPR-0038"]


def test_any_layers_forward_cannot_be_pickled() -> None:
    message = "Can't pickle <function RMSNorm.forward at 0x7f00>: it's not the same object as transformers.x.forward"
    assert ids(f"_pickle.PicklingError: {message}") == ["RPR-0038"]


def test_a_part_of_the_message_that_shows_another_cause_speaks_against() -> None:
    text = (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected version 0 instead."
    )
    assert ids(text) == []


TWO_DEVICES = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {}!"
IN_STEP = '  File "/env/torch/optim/adamw.py", line 9, in step\n    ...\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IN_STEP + TWO_DEVICES.format("cuda:0 and cpu"), ["RPR-0028"]),
        (IN_STEP.replace("/", "\\") + TWO_DEVICES.format("cpu and cuda:1"), ["RPR-0028"]),
        (IN_STEP.replace("torch/optim/adamw", "my/model") + TWO_DEVICES.format("cuda:0 and cpu"), []),
        (TWO_DEVICES.format("cuda:0 and cpu"), []),
        ("resuming from epoch 3\n" + TWO_DEVICES.format("cuda:0 and cpu"), ["RPR-0028"]),
        (IN_STEP + "RuntimeError: expected device cpu but got device cuda:0", ["RPR-0028"]),
        ("RuntimeError: expected device cuda:0 but got device cpu", []),
    ],
)
def test_a_common_message_counts_with_a_call_or_a_word(text: str, expected: list[str]) -> None:
    assert ids(text) == expected
    for candidate in found(text).candidates:
        assert candidate.confidence is Confidence.POSSIBLE


def test_a_message_of_its_own_needs_no_stack() -> None:
    text = "RuntimeError: It looks like your LightningModule has parameters that were not used in producing the loss."
    (candidate,) = found(text).candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0024", Confidence.LIKELY)


def test_a_call_decides_between_repros_with_one_message() -> None:
    message = "RuntimeError: No backend type associated with device type cpu"
    frame = '  File "/env/torchmetrics/metric.py", line 452, in _sync_dist\n    ...\n'
    assert ids(frame + message) == ["RPR-0020"]
    assert sorted(ids(message)) == ["RPR-0001", "RPR-0019", "RPR-0020"]


def test_causes_outside_the_catalogue_are_named_where_the_answer_is_only_possible() -> None:
    shown = format_match(found("RuntimeError: Expected to have finished reduction in the prior iteration"), 200).plain
    assert "a step without its backward, as when a batch is skipped: look at what is between" in shown
    assert "\nworks" not in shown
    own = "RuntimeError: It looks like your LightningModule has parameters that were not used"
    assert "\nor " not in format_match(found(own), 200).plain


def test_versions_that_are_not_affected_are_offered_no_fix() -> None:
    text = "RuntimeError: No backend type associated with device type cpu\n\nlr_find\nlightning==2.6.1\ntorch==2.9.0"
    shown = format_match(found(text), 200).plain
    finder = f"\n{shown}".partition("\nRPR-0001 ")[2].partition("\n\n")[0]
    assert "lightning 2.6.1" in finder
    assert "would fix" not in finder
