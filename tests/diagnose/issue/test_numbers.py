"""What the numbers in an issue say by themselves."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.numbers import Finding, find_numbers


def read(text: str) -> dict[str, Finding]:
    """Return the findings in a text, by name."""
    issue = f"# A question\n\n{text}\n"
    return {finding.name: finding for finding in find_numbers(read_issue(issue), issue)}


def log(*losses: float, **more: float) -> str:
    """Return a log of the trainer's."""
    lines = [{"loss": loss, **more} for loss in losses]
    return "```\n" + "\n".join(map(str, lines)) + "\n```"


def test_losses_that_repeat_are_those_of_unchanged_weights() -> None:
    found = read(log(*[0.91, 1.32, 0.77, 1.05] * 2))["loss-repeats"]
    assert found.title
    assert "after 4 steps" in found.text
    assert "loss-repeats" not in read(log(0.91, 1.32, 0.77, 1.05, 0.91, 1.31, 0.77, 1.05))


@pytest.mark.parametrize(("loss", "words"), [(0.6931, "ln 2"), (2.3026, "ln 10"), (11.931, "ln 151936")])
def test_a_constant_loss_of_guessing(loss: float, words: str) -> None:
    assert words in read(log(loss, loss, loss))["loss-constant"].text
    assert words in read(f"The loss stays at {loss} for all epochs.")["loss-constant"].text


def test_a_constant_loss_of_no_number_of_classes() -> None:
    assert "ln" not in read(log(1.5, 1.5, 1.5))["loss-constant"].text.split()
    assert not read("The loss stays at 1.5 for all epochs.")
    assert not read(log(1.5, 1.4, 1.5))


def test_a_gradient_of_zero() -> None:
    assert read(log(1.2, 1.1, grad_norm=0.0))["gradient-zero"].title
    found = read(log(1.2, 1.1, grad_norm=0.5))
    assert "gradient-zero" not in found
    assert not found["gradient-not-zero"].title


def test_equal_rewards_come_before_the_gradient_that_they_make_zero() -> None:
    found = find_numbers(read_issue(text := log(0.0, frac_reward_zero_std=1.0, grad_norm=0.0)), text)
    assert [one.name for one in found] == ["rewards-equal", "gradient-zero"]
    assert "rewards-equal" not in read(log(0.0, frac_reward_zero_std=0.5))


def test_a_rate_of_zero() -> None:
    assert "rate-zero" in read(log(1.2, 1.1, 1.3, learning_rate=0.0))
    assert "rate-zero" not in read(log(1.2, 1.1, 1.3, learning_rate=1e-5))


def test_the_last_loss_before_nan() -> None:
    found = read(log(1.25, 0.75, float("nan"), float("nan")))["nan-later"]
    assert "2 printed steps" in found.text
    assert "0.75" in found.text


def test_a_table_of_losses_that_grow_with_accumulation() -> None:
    table = "| accumulation | loss |\n|---|---|\n| 1 | 2.1 |\n| 4 | 8.3 |\n| 16 | 34 |"
    assert "loss-times-accumulation" in read(table)
    assert "loss-times-accumulation" not in read(table.replace("34", "2.2"))


def test_a_negative_constant_is_a_placeholder() -> None:
    assert "loss-placeholder" in read("With pipeline parallelism the loss is always -1.")
    assert "loss-placeholder" in read("The loss reads -1 all the time.")
    assert not read("The loss is always 2.")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torchrun --nproc_per_node=4 a.py\n\nThe gradients are exactly 4x as large.", "factor-ranks"),
        ("torchrun --nproc_per_node=2 a.py\n\nThe grad norm is doubled.", "factor-ranks"),
        ("With gradient_accumulation_steps=8 the loss is 8 times higher.", "factor-accumulation"),
    ],
)
def test_an_exact_factor(text: str, name: str) -> None:
    assert read(text)[name].title


def test_another_factor_decides_nothing() -> None:
    assert not read("torchrun --nproc_per_node=4 a.py\n\nThe gradients are 3x as large.")


def test_the_numbers_of_a_script_are_no_results() -> None:
    assert not read("```python\nimport torch\n\nloss = 0.5\nloss = 0.5\nloss = 0.5\n```")


def test_values_in_a_list_are_read_as_those_of_a_log() -> None:
    found = read("One step:\n- loss 0.0, grad_norm 0.0, frac_reward_zero_std 1.0")
    assert {"rewards-equal", "gradient-zero"} <= set(found)
    listed = "Losses:\n- epoch 1: 0.913, 1.324, 0.775, 1.056\n- epoch 2: 0.913, 1.324, 0.775, 1.056"
    assert "after 4 steps" in read(listed)["loss-repeats"].text
