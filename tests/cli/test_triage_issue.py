"""`repros triage` of an issue's text: what is reported comes first, and the report's own facts decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command

SCRIPT = "```python\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\nprint(model(torch.ones(1, 2)))\n```\n"


def answer(repros: Command, here: Path, text: str) -> dict[str, Any]:
    """Return the answer to a text as JSON."""
    (here / "report.md").write_text(text, encoding="utf-8")
    code, out, err = repros("report.md", "--json")
    assert (code in {0, 1}, err) == (True, "")
    found: dict[str, Any] = json.loads(out)
    assert found["kind"] == "issue"
    return found


def test_a_symptom_comes_before_the_script_which_is_to_be_run(repros: Command, here: Path) -> None:
    found = answer(repros, here, f"# The loss is NaN from step 300 on\n\nIt is fine before.\n\n{SCRIPT}")
    assert "finite" in found["title"]
    assert found["sections"]["reported"] == ["The loss is NaN from step 300 on"]
    assert found["sections"]["check"]
    assert found["next"][0] == "repros triage report.md --run"


def test_the_message_of_a_title_comes_before_a_symptom(repros: Command, here: Path) -> None:
    title = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x32 and 64x10) after resuming, the loss was NaN"
    found = answer(repros, here, f"# {title}\n\nI do not know why.\n\n{SCRIPT}")
    assert found["sections"]["error"][0].startswith("line 1: RuntimeError: mat1")
    assert "reported" not in found["sections"]


@pytest.mark.parametrize(
    "text",
    [
        "It stops with `RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x32 and\n64x10)` in my head.",
        'It ends with the message "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x32 and 64x10)" at once.',
        "my log says: mat1 and mat2 shapes cannot be multiplied (8x32 and 64x10). What is it?",
    ],
)
def test_a_message_within_a_sentence_is_an_error(repros: Command, here: Path, text: str) -> None:
    found = answer(repros, here, f"# A question\n\n{text}\n")
    assert "8x32" in " ".join(found["sections"]["error"])
    assert "stops with" not in " ".join(found["sections"]["error"])


def test_a_change_of_release_has_both_ends_and_the_command(repros: Command, here: Path) -> None:
    text = f"# A tensor is printed in another order\n\nOn peft 0.14.0 it works, 0.17.1 is broken.\n\n{SCRIPT}"
    found = answer(repros, here, text)
    assert found["title"] == "It began between peft 0.14.0 and 0.17.1"
    assert found["next"][0] == "repros bisect --from-issue report.md --package peft --from 0.14.0 --to 0.17.1"


def test_neighbouring_releases_have_a_link_and_no_bisection(repros: Command, here: Path) -> None:
    found = answer(repros, here, "# Rounding changed from peft 0.17.0 to 0.17.1\n\nNothing else did.\n")
    assert found["sections"]["link"] == ["https://github.com/huggingface/peft/compare/v0.17.0...v0.17.1"]
    assert not any("bisect" in command for command in found["next"])


def test_what_a_release_is_known_to_have_changed(repros: Command, here: Path) -> None:
    found = answer(repros, here, "# Since datasets 4.0.0 a column cannot be sorted\n\nBefore, it was a list.\n")
    assert "lazy Column" in found["sections"]["begins"][0]
    assert "3.6.0" in found["next"][0]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("The words of the third epoch are purple.", "if it ends in one"),
        ("The score of the third epoch is purple.", "the value as printed"),
        ("It raises something that I did not write down.", "down to the exception's class"),
        ("It was purple, and used to work before.", "the release with which it works"),
    ],
)
def test_a_traceback_is_asked_for_only_where_something_was_raised(
    repros: Command, here: Path, text: str, missing: str
) -> None:
    found = answer(repros, here, f"# A question\n\n{text}\n")
    assert missing in found["sections"]["missing"][0]
    assert found["certainty"] == "unknown"


def test_a_comparison_of_the_report_is_gone_on_with(repros: Command, here: Path) -> None:
    text = "# A question\n\nThe purple scores come with the new tokenizer. With the old tokenizer it works.\n"
    found = answer(repros, here, text)
    assert found["sections"]["apart"] == ["With the old tokenizer it works."]
    assert "side by side" in found["sections"]["check"][0]


def test_commands_fit_the_report(repros: Command, here: Path) -> None:
    launched = "# Training hangs at the end of the epoch\n\n```bash\naccelerate launch --num_processes 8 sft.py\n```\n"
    assert "repros watch -- accelerate launch --num-processes 2 sft.py" in answer(repros, here, launched)["next"]
    workers = "# DataLoader workers hang\n\nWith num_workers=8 on a single GPU it hangs, with 0 not.\n"
    assert not any("torchrun" in command for command in answer(repros, here, workers)["next"])


def test_a_line_to_paste_is_never_cut(repros: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = answer(repros, here, "# Loss is NaN with transformers 4.50.3, with 4.49.0 it is fine\n\nA100, bf16.\n")
    text = " ".join(repros("report.md")[1].split())
    assert " ".join(found["sections"]["check"][0].split()) in text
    assert sum(cause in text for cause in found["sections"]["possible"]) >= 1
    assert len(found["sections"]["possible"]) > 1


CUT = """```
Traceback (most recent call last):
  File "/home/me/sft.py", line 21, in main
    accelerator.backward(loss)
  File "/opt/env/lib/python3.11/site-packages/accelerate/accelerator.py", line 2400, in backward
    loss.backward(**kwargs)
```
"""


def test_a_cut_traceback_is_asked_for_from_its_last_frame_on(repros: Command, here: Path) -> None:
    found = answer(repros, here, f"# Fine-tuning fails\n\n{CUT}")
    (where,) = found["sections"]["where"]
    assert "cut at accelerate/accelerator.py:2400 backward" in where
    assert where.endswith("called by me/sft.py:21 main: accelerator.backward(loss)")
    assert found["sections"]["missing"] == ["the rest of the traceback, down to the exception's class and message"]
    assert not any("number" in text for texts in found["sections"].values() for text in texts)


def test_numbers_decide_before_the_causes_of_a_symptom(repros: Command, here: Path) -> None:
    losses = "\n".join(f"step {at}: loss: {loss}" for at, loss in enumerate([0.91, 1.32, 0.77, 1.05] * 2))
    found = answer(repros, here, f"# The loss of my LoRA adapter does not change\n\n```\n{losses}\n```\n")
    assert (found["title"], found["certainty"]) == ("No weight changes between the epochs", "likely")
    assert "after 4 steps" in found["sections"]["because"][0]
    assert "possible" not in found["sections"]


def test_the_check_of_a_pair_compares_what_differs(repros: Command, here: Path) -> None:
    text = "# Scores are worse\n\nWith the fused kernel they fall, without the fused kernel everything is fine.\n"
    found = answer(repros, here, text)
    assert found["title"] == "It works without fused kernel, and fails with fused kernel"
    assert any("torch.save" in line for line in found["sections"]["check"])


def test_gradients_of_a_compiled_function_are_compared_by_its_name(repros: Command, here: Path) -> None:
    script = "```python\nimport torch\n\ndef wave(x):\n    return x.sin()\n\nfast = torch.compile(wave)\n```\n"
    found = answer(repros, here, f"# torch.compile: wrong gradients\n\nThe eager ones differ.\n\n{script}")
    assert any("grads(torch.compile(wave" in line for line in found["sections"]["check"])


def test_a_cause_that_the_report_excludes_is_named_and_not_offered(repros: Command, here: Path) -> None:
    found = answer(repros, here, "# The loss is 0\n\nIn bf16 the first step has a normal loss, then the loss is 0.\n")
    assert not any(cause.startswith("all labels are masked") for cause in found["sections"]["possible"])
    assert found["sections"]["excluded"][0].startswith("all labels are masked with -100, as ")


def test_settings_report_no_symptom(repros: Command, here: Path) -> None:
    text = "# [Bug] a title\n\nSettings: shuffle true, sampler random, shards 4, resume_training, 0.6 of the memory.\n"
    assert answer(repros, here, text)["title"] == "No known symptom"


def test_a_hang_before_the_first_epoch_is_none_of_a_model_that_does_not_learn(repros: Command, here: Path) -> None:
    text = "# The model is not training on two GPUs\n\nOn GPUs it gets stuck before epoch 0.\n"
    found = answer(repros, here, text)
    assert found["title"].startswith("Ranks, workers or the launcher wait")
    assert [cause.partition(":")[0] for cause in found["sections"]["possible"]] == ["at the start"]


def test_an_error_without_its_text_has_no_symptom_of_a_result(repros: Command, here: Path) -> None:
    found = answer(repros, here, "# Packing raises an error\n\nWith packing it gives a shape mismatch.\n")
    assert found["title"] == "It ends in an error whose text the report lacks"
    assert found["sections"]["missing"]


def test_a_supposed_cause_comes_with_its_proof(repros: Command, here: Path) -> None:
    text = "# The loss is reduced wrongly\n\nThe cause is utils/dist.py, which returns early (line 12).\n"
    found = answer(repros, here, text)
    assert "utils/dist.py" in found["sections"]["supposed"][0]
    assert "utils/dist.py:12" in found["sections"]["check"][0]
    assert "possible" not in found["sections"]


def test_a_supposed_cause_leaves_the_causes_of_a_symptom(repros: Command, here: Path) -> None:
    text = (
        "# Loss becomes NaN after 300 steps\n\nI think the cause is `scale_loss` in trainer.py, which divides by 0.\n"
    )
    found = answer(repros, here, text)
    assert "trainer.py" in found["sections"]["supposed"][0]
    assert "trainer.py" in found["sections"]["check"][0]
    assert len(found["sections"]["check"]) > 1
    assert found["sections"]["possible"]


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("# Odd summary of my module\n\nI print it:\n\n0 | encoder | BertModel | 110 M | eval\n", "in eval mode"),
        (
            "# A question\n\nresume_from_checkpoint=out/checkpoint-500, streaming: true\nper_device_batch_size: 4.\n",
            "2,000 samples",
        ),
    ],
)
def test_what_follows_from_settings_alone_supposes_no_cause(
    repros: Command, here: Path, text: str, computed: str
) -> None:
    found = answer(repros, here, text)
    assert found["title"] == "No known symptom"
    assert computed in found["sections"]["computed"][0]
    assert found["sections"]["reported"]


def test_the_sentence_of_a_title_is_shown_once(repros: Command, here: Path) -> None:
    title = "`Runner.load` does not take `weights_only`, so a user cannot set it"
    text = f"# {title}\n\n```\ntransformers==4.53.3\n0 | encoder | BertModel | 110 M | eval\n```\n"
    found = answer(repros, here, text)
    assert found["title"] == "The report supposes a cause, which is to be proved"
    assert found["sections"]["supposed"] == [title]
    assert "computed" in found["sections"]
    assert "reported" not in found["sections"]


def test_values_that_a_report_has_are_not_asked_for(repros: Command, here: Path) -> None:
    text = "# A question\n\nAt step 40 it prints 31.4 and I expect 12.9; step 39 prints 12.8.\n"
    assert "missing" not in answer(repros, here, text)["sections"]
    text = "# A question\n\nAt step 40 it is purple, torch is 2.4.1.\n"
    assert "if it ends in one" in answer(repros, here, text)["sections"]["missing"][0]


def test_settings_that_contradict_each_other_decide(repros: Command, here: Path) -> None:
    text = "# It fails\n\n```\nNPROC_PER_NODE=4 swift sft --device_map auto\n```\n"
    found = answer(repros, here, text)
    assert (found["title"], found["certainty"]) == (
        "device_map=auto and 4 processes contradict each other",
        "likely",
    )


@pytest.mark.parametrize(
    ("below", "shown"),
    [
        ("It began yesterday, and I do not know why.", 1),
        ("Please help me with this one.", 1),
        ("", 1),
    ],
)
def test_the_prose_below_a_title_is_no_part_of_its_message(repros: Command, here: Path, below: str, shown: int) -> None:
    found = answer(repros, here, f"# ValueError: Attempting to unscale FP16 gradients.\n{below}\n\nThanks.\n")
    assert found["sections"]["error"] == [f"line {shown}: ValueError: Attempting to unscale FP16 gradients."]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# torch.cuda.OutOfMemoryError\nMy card has 10 GB, what can I do?\n", "The GPU has not enough free memory"),
        (
            "# A rank fails\nIt ends in `RuntimeError: Detected mismatch between collectives on ranks. Rank _ is`.\n",
            "Ranks called different collectives, or the same one with other shapes",
        ),
        (
            "# verl ends early\nA worker died or was killed while executing a task by an unexpected system error.\n",
            "A Ray worker process ended; the reason is in that worker's own log",
        ),
        (
            "# Error detected in ReluBackward0\nI call relu_ behind relu, and compile it.\n",
            "Anomaly detection names the operation whose backward pass failed",
        ),
    ],
)
def test_a_message_leads_to_its_family_in_any_wording(repros: Command, here: Path, text: str, title: str) -> None:
    assert answer(repros, here, text)["title"] == title


def test_a_failure_that_only_prints_does_not_deny_the_error_of_the_report(repros: Command, here: Path) -> None:
    text = "# No gradient\n\nUserWarning: None of the inputs have requires_grad=True. Gradients will be None\n"
    found = answer(repros, here, f"{text}Then: RuntimeError: element 0 of tensors does not require grad\n")
    assert "no exception" not in str(found)


def test_no_value_is_to_be_printed_where_a_program_hangs(repros: Command, here: Path) -> None:
    text = "# Training gets stuck\nWe traced it to line 43 of own/loop.py, at step 8. It runs under torchrun.\n"
    found = answer(repros, here, text)
    assert "v.dtype" not in str(found)
    assert "missing" not in found["sections"]


def test_a_later_patch_release_is_the_first_to_try(repros: Command, here: Path) -> None:
    text = "# Local data are not found\n\nAfter the upgrade of datasets from 3.3.2 to 3.4.0 my folder is not read.\n"
    found = answer(repros, here, text)
    assert found["sections"]["begins"][0].startswith("datasets 3.4.1 is a later patch release")
    known = answer(repros, here, f"{text}\nIt is the same with datasets 3.4.1.\n")
    assert "patch" not in str(known["sections"]["begins"])


def test_a_program_that_worked_until_a_day_is_tried_with_the_packages_of_that_day(repros: Command, here: Path) -> None:
    text = "# The model does not learn\n\nThe same code worked on 2025-02-24. Now the loss stays at 2.\n"
    found = answer(repros, here, text)
    assert "--exclude-newer 2025-02-24" in found["sections"]["begins"][0]


def test_stated_numbers_are_shown_with_an_error(repros: Command, here: Path) -> None:
    text = "# No memory\n\nWe train a LoRA. trainable params: 1,361,753,856 of 5,661,833,328\n\n"
    found = answer(repros, here, f"{text}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.56 GiB.\n")
    assert "24%" in found["sections"]["computed"][0]
