"""Commands, options, settings and code in an issue's sentences are no report."""

from __future__ import annotations

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.prose import without_pasted
from repros.diagnose.issue.symptoms import find_symptom


@pytest.mark.parametrize(
    "line",
    [
        "  --gradient_accumulation_steps 4",
        "--packing",
        "actor.optim.lr_warmup_steps=10",
        "lora_alpha: 16",
        "export NCCL_DEBUG=INFO",
        "CUDA_VISIBLE_DEVICES=0 python sft.py --resume last",
        "torchrun --nproc_per_node=2 sft.py",
        "from torch import nn",
        "    def forward(self, x):",
        "scheduler = make_scheduler(optimizer)",
        "trainer.train(resume_from_checkpoint=True)",
        "- 3 epochs, batch 1 per device, accumulation 2, lr 5e-6, warmup_ratio 0.05",
        "Settings: bf16 true, lr 1e-4, gradient_accumulation_steps 4.",
        "- [x] I have searched for this hang",
    ],
)
def test_a_pasted_line_is_left_out(line: str) -> None:
    assert without_pasted(f"It is slow.\n{line}\nWhy?") == "It is slow.\nWhy?"


@pytest.mark.parametrize(
    "line",
    [
        "The loss is NaN from step 3 on.",
        "loss = nan",
        "grad_norm: nan",
        "python train.py hangs at the end of the epoch.",
        "transformers==4.52.4",
        "Accelerate launch never returns - why?",
        "- step 300, loss nan",
        "- two epochs, then it is slow",
        "- the second epoch is empty",
    ],
)
def test_a_sentence_or_a_result_is_kept(line: str) -> None:
    assert without_pasted(line) == line


def test_the_lines_behind_a_backslash_belong_to_its_command() -> None:
    assert without_pasted("accelerate launch sft.py \\\n  gradient accumulation\nIt stops.") == "It stops."


def test_an_option_reports_no_symptom() -> None:
    command = "python sft.py \\\n  --gradient_accumulation_steps 4 \\\n  --lr_scheduler constant\n"
    assert find_symptom(read_issue(f"# A question\n\nThe pictures are purple.\n\n{command}")) is None
