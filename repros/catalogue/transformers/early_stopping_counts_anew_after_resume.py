# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0135"
# title = "EarlyStoppingCallback counts its patience anew after a resume"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/main_classes/trainer"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/28544",
#     "https://github.com/huggingface/transformers/issues/10290",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/pull/29666",
#     "https://github.com/huggingface/transformers/pull/32115",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/1463",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["patience_counted_anew"]
#
# [tool.repro.variants.failing]
# about = "patience 3 and a score that never improves, interrupted after step 3 and resumed"
# raises = "AssertionError"
# match = "expected the end after step 4, got 6"
#
# [tool.repro.variants.fixed]
# about = "the new callback gets the old one's counter"
# source = "https://github.com/huggingface/transformers/issues/28544"
#
# [tool.repro.variants.restored]
# outcome = "fails"
# about = "restore_callback_states_from_checkpoint=True: exists since transformers 4.41, and works since 4.45"
# claim = "the states of callbacks are restored from the checkpoint"
# source = "https://huggingface.co/docs/transformers/main_classes/trainer"
# requires = ["transformers>=4.41"]
# affected = ["transformers<4.45"]
#
# [tool.repro.variants.not_interrupted]
# outcome = "passes"
# contrast = true
# about = "the same training in one piece"
# ///
"""A training with early stopping is interrupted and resumed, as on a cluster with a time limit.

Symptom: the training goes on for up to `early_stopping_patience` evaluations more after each resume; with interruptions
more frequent than that it never stops. A training that early stopping had ended goes on. Silent.

Cause: the number of evaluations without an improvement is an attribute of the callback object. A new one starts from 0,
while the best score comes back with the checkpoint. Checkpoints have the states of callbacks since transformers 4.41,
up to 4.44 those of before the training, and no resume reads them unless it is told to.

Fix: `TrainingArguments(restore_callback_states_from_checkpoint=True)`, which works since transformers 4.45. Before: store
the counter and set it on the new callback.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

STRATEGY = "eval_strategy" if hasattr(TrainingArguments, "eval_strategy") else "evaluation_strategy"  # before 4.41


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x, labels):
        return {"loss": (self.weight * 0.0 * x).mean(), "logits": x}  # the loss is 0 with each evaluation


class Interrupt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step == 3


def new_trainer(folder, accelerator, *callbacks, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=10,
        save_strategy="steps",
        save_steps=1,
        eval_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        report_to=[],
        disable_tqdm=True,
        **{STRATEGY: "steps"},
        **options,
    )
    data = [{"x": torch.ones(1), "labels": 0.0}] * 8
    return Trainer(Model(), arguments, train_dataset=data, eval_dataset=data, callbacks=list(callbacks))


def interrupted(folder, accelerator):
    stopping = EarlyStoppingCallback(early_stopping_patience=3)
    new_trainer(folder, accelerator, stopping, Interrupt()).train()
    return f"{folder}/checkpoint-3", stopping.early_stopping_patience_counter


def resumed(checkpoint, folder, accelerator, counter=0, **options):
    stopping = EarlyStoppingCallback(early_stopping_patience=3)
    stopping.early_stopping_patience_counter = counter
    trainer = new_trainer(folder, accelerator, stopping, **options)
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer.state.global_step


def failing(*where):
    checkpoint, _ = interrupted(*where)
    return resumed(checkpoint, *where)


def fixed(*where):
    checkpoint, counter = interrupted(*where)
    return resumed(checkpoint, *where, counter=counter)


def restored(*where):
    checkpoint, _ = interrupted(*where)
    return resumed(checkpoint, *where, restore_callback_states_from_checkpoint=True)


def not_interrupted(*where):
    return resumed(None, *where)


VARIANTS = {v.__name__: v for v in (failing, fixed, restored, not_interrupted)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        got = VARIANTS[variant](folder, accelerator)
    # The first evaluation is the best, and three without an improvement follow.
    assert got == 4, f"expected the end after step 4, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
