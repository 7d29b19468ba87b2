# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0137"
# title = "label_smoothing_factor with accumulation: gradients times the accumulated steps"
# kind = "bug"
# documented = "https://github.com/huggingface/transformers/issues/46731"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/46731",
#     "https://github.com/huggingface/transformers/pull/46734",
# ]
# upstream.introduced_by = ["https://github.com/huggingface/transformers/pull/34198"]
# upstream.fixed_by = ["https://github.com/huggingface/transformers/pull/47261"]
# packages = ["transformers"]
# affected = ["transformers>=4.46,<5.15"]
# exists = ["transformers>=4.46"]
# exists_source = "https://github.com/huggingface/transformers/pull/34198"
# home = "2025-11"
# silent = true
#
# [tool.repro.variants.failing]
# about = "label_smoothing_factor=0.5, and four batches to a step"
# raises = "AssertionError"
# match = "the weight after one step: expected 0.25, got 1.0"
#
# [tool.repro.variants.fixed]
# about = "trainer.model_accepts_loss_kwargs = False: Trainer divides by the number of steps"
#
# [tool.repro.variants.own_loss]
# outcome = "passes"
# about = "compute_loss_func with PyTorch's label_smoothing, a sum that is divided by num_items_in_batch"
# requires = ["transformers>=4.46"]
#
# [tool.repro.variants.without_smoothing]
# outcome = "passes"
# contrast = true
# about = "the model's own smoothed loss, which divides by num_items_in_batch"
# ///
"""Labels are smoothed by `Trainer`, and gradients are accumulated.

Symptom: the gradients grow with `gradient_accumulation_steps`; without smoothing they do not. Training is as with a
learning rate that many times too large. Silent. Where `average_tokens_across_devices` is on, the default of transformers
4.57, they grow with the number of processes as well, without accumulation, too.

Cause: since transformers 4.46 `Trainer` leaves the division by the accumulated steps to models whose forward takes
`**kwargs`, as those of the library do. With `label_smoothing_factor` the model's loss is not used, and up to 5.14
`LabelSmoother` takes the mean of its batch and knows no `num_items_in_batch`.

Fix: transformers 5.15. Before: `trainer.model_accepts_loss_kwargs = False`, or a smoothed loss of one's own.

Watch: no check sees it, since a loss that many times larger would be as healthy.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import PretrainedConfig, Trainer, TrainingArguments


class Model(nn.Module):
    """Two classes, whose logits are -weight and weight."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.config = PretrainedConfig()  # Trainer reads it where labels are smoothed

    def forward(self, x, labels=None, num_items_in_batch=None, **kwargs):
        logits = torch.cat([-self.weight, self.weight]).expand(len(x), 2)
        outputs = {"logits": logits}
        if labels is not None:
            outputs = {"loss": smoothed({"logits": logits}, labels, num_items_in_batch), **outputs}
        return outputs


def smoothed(outputs, labels, num_items_in_batch=None):
    loss = nn.functional.cross_entropy(outputs["logits"], labels, label_smoothing=0.5, reduction="sum")
    return loss / (num_items_in_batch or len(labels))


def failing(arguments, data):
    arguments.label_smoothing_factor = 0.5
    return Trainer(Model(), arguments, train_dataset=data)


def fixed(arguments, data):
    arguments.label_smoothing_factor = 0.5
    trainer = Trainer(Model(), arguments, train_dataset=data)
    trainer.model_accepts_loss_kwargs = False
    return trainer


def own_loss(arguments, data):
    return Trainer(Model(), arguments, train_dataset=data, compute_loss_func=smoothed)


def without_smoothing(arguments, data):
    return Trainer(Model(), arguments, train_dataset=data)


VARIANTS = {v.__name__: v for v in (failing, fixed, own_loss, without_smoothing)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    # Both classes have the probability 0.5, and the smoothed label is 0.25, 0.75: the loss falls by 0.25 with each of
    # the logits' distance, 0.5 with weight, in each batch and so in their mean. SGD steps by half of that.
    data = [{"x": torch.ones(1), "labels": 1}] * 8
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            use_cpu=accelerator == "cpu",
            per_device_train_batch_size=2,
            gradient_accumulation_steps=4,
            max_steps=1,
            optim="sgd",
            learning_rate=0.5,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = VARIANTS[variant](arguments, data)
        trainer.train()
    got = round(trainer.model.weight.item(), 4)
    assert got == 0.25, f"the weight after one step: expected 0.25, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
