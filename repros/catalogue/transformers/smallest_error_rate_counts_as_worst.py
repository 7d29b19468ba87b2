# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0157"
# title = "metric_for_best_model='wer' keeps and loads the worst checkpoint"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/main_classes/trainer"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/pull/31142",
#     "https://github.com/huggingface/transformers/issues/18274",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["worst_counts_as_best"]
#
# [tool.repro.variants.failing]
# about = "metric_for_best_model='wer' and load_best_model_at_end=True"
# raises = "AssertionError"
# match = "the model of the error rate 0.2 after 3 steps: expected its weight 3.0, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "greater_is_better=False"
# source = "https://huggingface.co/docs/transformers/main_classes/trainer"
#
# [tool.repro.variants.name_of_a_loss]
# outcome = "fails"
# about = "a name that ends in loss: works since transformers 4.42"
# claim = "the least is best for every metric whose name ends in loss"
# source = "https://github.com/huggingface/transformers/pull/31142"
# affected = ["transformers<4.42"]
#
# [tool.repro.variants.full_name]
# outcome = "fails"
# about = "the name with its prefix, eval_wer"
# ///
"""The best checkpoint is chosen by a metric that should be small: an error rate, a perplexity, a distance.

Symptom: the model that `Trainer` loads at the end, and keeps with `save_total_limit`, is that of the first evaluation.
Early stopping stops as long as the metric falls. Silent.

Cause: `greater_is_better` is False only for `loss` and `eval_loss`, since transformers 4.42 for every name that ends in
"loss". For all others it is True.

Fix: `TrainingArguments(greater_is_better=False)`.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

STRATEGY = "eval_strategy" if hasattr(TrainingArguments, "eval_strategy") else "evaluation_strategy"  # before 4.41


class Model(nn.Module):
    """A model whose weight is the number of steps."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x, labels):
        return {"loss": -self.weight.sum(), "logits": x}


def train(folder, accelerator, name="wer", **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=3,
        optim="sgd",
        learning_rate=1.0,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        save_strategy="steps",
        save_steps=1,
        eval_steps=1,
        load_best_model_at_end=True,
        report_to=[],
        disable_tqdm=True,
        **{STRATEGY: "steps"},
        **options,
    )
    data = [{"x": torch.ones(1), "labels": 0}] * 8
    rates = iter([0.9, 0.5, 0.2])
    trainer = Trainer(
        Model(), arguments, train_dataset=data, eval_dataset=data, compute_metrics=lambda _: {name: next(rates)}
    )
    trainer.train()
    return round(trainer.model.weight.item(), 4)


def failing(*where):
    return train(*where, metric_for_best_model="wer")


def fixed(*where):
    return train(*where, metric_for_best_model="wer", greater_is_better=False)


def name_of_a_loss(*where):
    return train(*where, name="edit_loss", metric_for_best_model="edit_loss")


def full_name(*where):
    return train(*where, metric_for_best_model="eval_wer")


VARIANTS = {v.__name__: v for v in (failing, fixed, name_of_a_loss, full_name)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator)
    assert got == 3.0, f"the model of the error rate 0.2 after 3 steps: expected its weight 3.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
