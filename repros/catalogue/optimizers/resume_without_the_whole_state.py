# /// script
# dependencies = ["torch>=2.4"]
#
# [tool.repro]
# id = "RPR-0044"
# title = "A resume from weights and optimizer alone trains differently than the run that it continues"
# kind = "misuse"
# documented = "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
# upstream.reports = [
#     "https://github.com/PolymathicAI/the_well/issues/77",
#     "https://github.com/allenai/tango/issues/154",
#     "https://github.com/huggingface/transformers/issues/17032",
# ]
# packages = ["torch"]
# requires = ["torch>=2.4"]  # float16 layers and GradScaler on the CPU
# home = "2026-07"
# silent = true
# finds = ["scaler_not_restored", "schedule_not_restored"]
#
# [tool.repro.variants.failing]
# about = "the checkpoint has the model's and the optimizer's state"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -1.25"
#
# [tool.repro.variants.fixed]
# about = "it also has the scaler's and the scheduler's state, the epoch, and the state of the random generator"
# source = "https://pytorch.org/tutorials/recipes/recipes/amp_recipe.html"
#
# [tool.repro.variants.without_scaler]
# outcome = "fails"
# about = "all but the scaler: its scale begins at 65536 again, and the first steps overflow and are skipped"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -0.59375"
# finds = ["scaler_not_restored"]
# source = "https://github.com/allenai/tango/issues/154"
#
# [tool.repro.variants.without_scheduler]
# outcome = "fails"
# about = "all but the scheduler: the learning rate begins its schedule anew"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -5.375"
# finds = ["schedule_not_restored"]
# source = "https://github.com/PolymathicAI/the_well/issues/77"
#
# [tool.repro.variants.without_epoch]
# outcome = "fails"
# about = "all but the epoch: the sampler shuffles as in epoch 0"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -0.859375"
# finds = []
#
# [tool.repro.variants.without_random_state]
# outcome = "fails"
# about = "all but the random generator's state: augmentation repeats what the first epoch drew"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -1.078125"
# finds = []
# source = "https://github.com/huggingface/transformers/issues/17032"
#
# [tool.repro.variants.without_optimizer]
# outcome = "fails"
# about = "all but the optimizer: momentum begins at zero"
# raises = "AssertionError"
# match = "the resumed epoch: expected weight -1.109375, got -1.03125"
# finds = []
# ///
"""A training that resumes from model and optimizer alone takes other steps than the uninterrupted one.

Symptom: a bump in the loss after each resume, and a result that a run in one piece does not have. Silent.

Cause: each of these keeps a state that no other state dict has. GradScaler restarts at 65536 and skips steps until it
has halved that far enough again; a scheduler restarts its schedule; a sampler that is seeded by the epoch repeats epoch
0's order; the random generator restarts from the seed; an optimizer without its state has no momentum.

Fix: save and load all of them. Each variant leaves one out; the weight after the resumed epoch shows which.

Watch: three variants are not found. `without_epoch` does what a resume within epoch 0 does on purpose; of
`without_random_state` it is not known which draws came before the resume; `without_optimizer` begins as a fine-tuning
does.
"""

import io
import sys

import torch
from torch import nn
from torch.utils.data import DistributedSampler

DATA = (1.0, 2.0, 3.0)


class Training:
    def __init__(self):
        torch.manual_seed(0)  # as at the start of every process
        self.model = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0, momentum=0.5)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.5**step)
        self.scaler = torch.amp.GradScaler("cpu")
        self.sampler, self.epoch = DistributedSampler(DATA, num_replicas=1, rank=0), 0

    def train_epoch(self):
        self.sampler.set_epoch(self.epoch)
        for index in self.sampler:
            x = DATA[index] * torch.randint(1, 3, (1, 1))  # augmentation: the sample, or twice the sample
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):  # up to 65504: a scale of 65536 overflows
                loss = self.model(x).sum()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.scheduler.step()
        self.epoch += 1

    def state(self):
        parts = ("model", "optimizer", "scheduler", "scaler")
        states = {part: getattr(self, part).state_dict() for part in parts}
        return {**states, "epoch": self.epoch, "random_state": torch.get_rng_state()}

    def load(self, state):
        for part in state.keys() - {"epoch", "random_state"}:
            getattr(self, part).load_state_dict(state[part])
        self.epoch = state.get("epoch", 0)
        torch.set_rng_state(state.get("random_state", torch.get_rng_state()))


def failing(state):
    return {part: state[part] for part in ("model", "optimizer")}


def fixed(state):
    return state


def without(part):
    return lambda state: {key: value for key, value in state.items() if key != part}


VARIANTS = {
    "failing": failing,
    "fixed": fixed,
    "without_scaler": without("scaler"),
    "without_scheduler": without("scheduler"),
    "without_epoch": without("epoch"),
    "without_random_state": without("random_state"),
    "without_optimizer": without("optimizer"),
}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    training, file = Training(), io.BytesIO()
    training.train_epoch()
    torch.save(VARIANTS[variant](training.state()), file)
    training.train_epoch()
    expected = training.model.weight.item()
    file.seek(0)
    training = Training()
    training.load(torch.load(file, weights_only=True))
    training.train_epoch()
    got = training.model.weight.item()
    assert got == expected, f"the resumed epoch: expected weight {expected}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
