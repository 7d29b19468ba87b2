"""Contradictions in an issue's settings, and arithmetic with them."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.numbers import Finding
from repros.diagnose.issue.settings import find_contradictions

CUT = """```
torchrun --nproc_per_node 4 train.py \\
  --model some/model \\
  --epochs 3
  --lora_rank 8
```
"""


def read(text: str, title: str = "It fails") -> dict[str, Finding]:
    """Return the findings in a report."""
    text = f"# {title}\n\n{text}\n"
    return {finding.name: finding for finding in find_contradictions(read_issue(text), text)}


def test_a_line_without_its_backslash_ends_the_command() -> None:
    found = read(CUT)["line-cut"]
    assert found.title
    assert "`--epochs 3`" in found.text
    assert "--lora_rank is run" in found.text


@pytest.mark.parametrize(
    "text",
    [
        CUT.replace("--epochs 3", "--epochs 3 \\"),
        "```\n--model some/model\n--epochs 3\n--lora_rank 8\n```\n",
        "Options:\n\n- a\n--epochs 3\n",
    ],
)
def test_whole_commands_and_lists_of_options(text: str) -> None:
    assert "line-cut" not in read(text)


def test_a_variable_with_its_dollar_is_not_set() -> None:
    assert (
        read("```\n$DATA=/mnt/data\npython train.py\n```\n")["variable-not-set"].check == "export DATA=...; echo $DATA"
    )
    assert "variable-not-set" not in read("```\nexport DATA=/mnt/data\necho $DATA\n```\n")


def test_one_model_over_all_gpus_and_several_processes() -> None:
    found = read("I start `torchrun --nproc_per_node=4 train.py` with device_map=auto.")
    assert found["device-map-processes"].title == "device_map=auto and 4 processes contradict each other"
    assert "device-map-processes" not in read("I start `python train.py` with device_map=auto.")


def test_the_version_that_is_stated_and_the_one_that_is_listed() -> None:
    text = "The version box says v2.5.\n\n```\npytorch-lightning==1.9.4\ntorch==2.1.0\n```\n"
    assert "1.9.4" in read(text, "Lightning does not train")["version-differs"].text
    assert "version-differs" not in read(text.replace("1.9.4", "2.5.1"), "Lightning does not train")
    assert "version-differs" not in read(text, "The loss is NaN")


def test_a_saved_data_set_keeps_a_setting_from_its_effect() -> None:
    text = "Packing has no effect.\n\n```yaml\npacking: true\ntokenized_path: saved/tokens\n```\n"
    assert "saved/tokens" in read(text)["saved-data"].text
    assert "saved-data" not in read(text.replace("has no effect", "is on"))


def test_the_samples_that_a_resumed_stream_skips() -> None:
    text = (
        "It waits after `--resume_from_checkpoint out/checkpoint-500 --streaming true`, 2 processes, "
        "gradient_accumulation_steps 8, per_device_train_batch_size 4."
    )
    assert "500 steps x 8 x 4 x 2 processes = 32,000 samples" in read(text)["samples-skipped"].text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Full training of Some-7B on an RTX 4090 24 GB is out of memory.", "7 billion parameters x 16 bytes"),
        ("LoRA of Some-14B on an RTX 4090 24 GB is out of memory.", "are 28 GB of the 24 GB of one card"),
    ],
)
def test_bytes_of_a_model_against_those_of_a_card(text: str, words: str) -> None:
    assert words in read(text)["larger-than-card"].text


@pytest.mark.parametrize(
    "text",
    [
        "LoRA of Some-7B on an RTX 4090 24 GB is out of memory.",
        "QLoRA of Some-32B on an RTX 4090 24 GB is out of memory.",
        "Full training of Some-7B on an A100 80 GB or an RTX 4090 24 GB is out of memory.",
        "Full training of Some-7B on an RTX 4090 24 GB gives a bad accuracy.",
    ],
)
def test_models_that_fit_or_of_which_too_little_is_known(text: str) -> None:
    assert "larger-than-card" not in read(text)


def test_a_part_of_the_model_in_eval_mode() -> None:
    text = "0 | encoder | SomeEncoder | 120 M | eval\n1 | head | Linear | 1.2 M | train\n"
    assert "encoder (120 M parameters)" in read(text)["part-in-eval"].text
    assert "part-in-eval" not in read(text.replace("| eval", "| train"))
