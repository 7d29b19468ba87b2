"""The sentences of an issue that report what is wrong."""

from __future__ import annotations

import pytest

from repros.diagnose.issue.complaints import complaints


@pytest.mark.parametrize(
    "text",
    [
        "We believe the loss is wrong: it is twice as high.",
        "Should be 0.5, got NaN.",
        "I want to train but it hangs at step 3.",
        "- with 2 GPUs: loss 5.1",
    ],
)
def test_a_complaint(text: str) -> None:
    assert complaints(text) == text


@pytest.mark.parametrize("text", ["I want to train on 2 GPUs.", "- with 2 GPUs", "- LoRA: works fine"])
def test_no_complaint(text: str) -> None:
    assert complaints(text) == ""
