# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0160"
# title = "A new learning rate and schedule on resume: the rate jumps to the old peak"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/issues/9099"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/9099",
#     "https://github.com/huggingface/transformers/issues/21399",
#     "https://github.com/bghira/SimpleTuner/issues/163",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/issues/34053",
#     "https://github.com/pytorch/examples/issues/816",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["new_rate_ignored"]
#
# [tool.repro.variants.failing]
# about = "linear from 0.1 is interrupted half-way and goes on with learning_rate=0.001, constant"
# raises = "AssertionError"
# match = "expected the rates [0.001, 0.001] and 4 steps of Adam, got [0.05, 0.1] and 4"
#
# [tool.repro.variants.fixed]
# about = "a callback sets the optimizer's rate and the schedule's base_lrs after the checkpoint is loaded"
#
# [tool.repro.variants.groups_alone]
# outcome = "fails"
# about = "a callback sets the rates of the optimizer's groups: the schedule overwrites them after a step"
# raises = "AssertionError"
# match = "expected the rates [0.001, 0.001] and 4 steps of Adam, got [0.001, 0.1] and 4"
#
# [tool.repro.variants.schedule_deleted]
# outcome = "fails"
# about = "scheduler.pt is deleted: Trainer then loads no optimizer state either, and Adam starts anew"
# raises = "AssertionError"
# match = "expected the rates [0.001, 0.001] and 4 steps of Adam, got [0.001, 0.001] and 2"
# finds = []
#
# [tool.repro.variants.same_schedule]
# outcome = "fails"
# about = "another learning_rate with the same linear schedule: it is ignored"
# raises = "AssertionError"
# match = "expected the rates [0.001, 0.001] and 4 steps of Adam, got [0.05, 0.025] and 4"
# ///
"""A training is resumed from its checkpoint with another learning rate.

Symptom: the new rate has no effect. With another schedule, too, the rate is neither the old nor the new one: it jumps
back to the old peak, or to another point of a curve that nobody has asked for. Silent.

Cause: the checkpoint has the optimizer's rates, and in scheduler.pt `base_lrs`, which Trainer loads after it has made
both from the new arguments. The curve itself is not in scheduler.pt: new curve times old rate. A new `max_steps` or
`num_train_epochs` is such a curve as well.

Fix: set `lr` and `initial_lr` of the groups and `base_lrs` of the schedule in `on_train_begin`, which runs after the
load. Or start a new training from the weights.

Watch: no check sees `schedule_deleted`, where the rate is the new one and Adam begins anew, as in a new training.
"""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return {"loss": (self.weight * x).mean()}


class Interrupt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step == 2


class Rates(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_step_begin(self, args, state, control, optimizer, **kwargs):
        self.seen.append(round(optimizer.param_groups[0]["lr"], 6))


class SetGroups(TrainerCallback):
    def on_train_begin(self, args, state, control, optimizer, **kwargs):
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] = args.learning_rate


class SetAll(SetGroups):
    def on_train_begin(self, args, state, control, optimizer, lr_scheduler, **kwargs):
        super().on_train_begin(args, state, control, optimizer)
        lr_scheduler.base_lrs = [args.learning_rate] * len(lr_scheduler.base_lrs)


def new_trainer(folder, accelerator, rate, schedule, *callbacks):
    arguments = TrainingArguments(
        folder,
        use_cpu=accelerator == "cpu",
        max_steps=4,
        optim="adamw_torch",
        learning_rate=rate,
        lr_scheduler_type=schedule,
        save_steps=2,
        report_to=[],
        disable_tqdm=True,
    )
    return Trainer(Model(), arguments, train_dataset=[{"x": torch.ones(1)}] * 32, callbacks=list(callbacks))


def failing(checkpoint, new):
    return new(0.001, "constant")


def fixed(checkpoint, new):
    return new(0.001, "constant", SetAll())


def groups_alone(checkpoint, new):
    return new(0.001, "constant", SetGroups())


def schedule_deleted(checkpoint, new):
    (checkpoint / "scheduler.pt").unlink()
    return new(0.001, "constant")


def same_schedule(checkpoint, new):
    return new(0.001, "linear")


VARIANTS = {v.__name__: v for v in (failing, fixed, groups_alone, schedule_deleted, same_schedule)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        new_trainer(folder, accelerator, 0.1, "linear", Interrupt()).train()  # the rates 0.1 and 0.075, of four
        checkpoint, rates = Path(folder, "checkpoint-2"), Rates()
        trainer = VARIANTS[variant](checkpoint, lambda *new: new_trainer(folder, accelerator, *new, rates))
        trainer.train(resume_from_checkpoint=str(checkpoint))
    steps = int(next(iter(trainer.optimizer.state.values()))["step"])
    got = rates.seen, steps
    assert got == ([0.001, 0.001], 4), (
        f"expected the rates [0.001, 0.001] and 4 steps of Adam, got {rates.seen} and {steps}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
