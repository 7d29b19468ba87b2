# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0195"
# title = "Averaged weights that are put into the model for a validation stay there"
# kind = "misuse"
# documented = "https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema"
# upstream.reports = [
#     "https://github.com/PKU-YuanGroup/Open-Sora-Plan/issues/186",
#     "https://github.com/aqlaboratory/openfold/pull/90",
#     "https://github.com/atomistic-machine-learning/schnetpack/pull/785",
#     "https://github.com/harubaru/waifu-diffusion/pull/31",
#     "https://github.com/huggingface/diffusers/issues/7549",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "copy the average into the model, validate, and train on"
# raises = "AssertionError"
# match = "expected the weight -3.0 after three steps, got -2.5"
#
# [tool.repro.variants.fixed]
# about = "keep copies of the parameters, and put them back after the validation"
# source = "https://github.com/harubaru/waifu-diffusion/pull/31"
#
# [tool.repro.variants.average_itself]
# outcome = "passes"
# about = "validate the AveragedModel"
#
# [tool.repro.variants.state_dict]
# outcome = "fails"
# about = "keep model.state_dict(), whose tensors are the parameters themselves, and load it after"
# claim = "the kept state has the weights of before the validation"
# source = "https://github.com/aqlaboratory/openfold/pull/90"
#
# [tool.repro.variants.saved_between]
# outcome = "fails"
# about = "put back, but a checkpoint is written before, and a run resumes from it"
# ///
"""A validation of averaged weights that changes what is trained.

Symptom: a training with an exponential moving average (EMA) goes worse the more often it validates or saves; the loss
jumps, or the average and the model are equal after each validation. Silent.

Cause: the average's values are written into the parameters that the optimizer trains (`copy_to(model.parameters())`),
so that the same pipeline can be validated or saved. Nothing puts the trained values back, and the next step starts from
the average. What is saved in between has the average as its model.

Fix: keep clones before, and copy them back after; diffusers' EMAModel and torch_ema have `store` and `restore` for it.
`state_dict()` keeps no values: its tensors are those that are overwritten. Write checkpoints after the restore, or
validate the averaged model itself.

Apart: an average that is left out of the checkpoint, or loaded as the model, is another failure.

Watch: `kept_weights_changed` finds the kept state dict, and so RPR-0068, too. There is no check for the others yet:
weights that a program loads on purpose between two steps look the same.
"""

import sys

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


def put(parameters, values):
    with torch.no_grad():
        for parameter, value in zip(parameters, values):
            parameter.copy_(value)


def evaluate(model):
    with torch.no_grad():
        model.eval()(torch.ones(1, 1))
    model.train()


def failing(model, average):
    put(model.parameters(), average.module.parameters())
    evaluate(model)


def fixed(model, average):
    kept = [parameter.clone() for parameter in model.parameters()]
    failing(model, average)
    put(model.parameters(), kept)


def state_dict(model, average):
    kept = model.state_dict()
    failing(model, average)
    model.load_state_dict(kept)


def average_itself(model, average):
    evaluate(average)


def saved_between(model, average):
    kept = [parameter.clone() for parameter in model.parameters()]
    failing(model, average)
    checkpoint = {name: value.clone() for name, value in model.state_dict().items()}
    put(model.parameters(), kept)
    model.load_state_dict(checkpoint)  # the resume


VARIANTS = {v.__name__: v for v in (failing, fixed, state_dict, average_itself, saved_between)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    for step in range(3):  # the gradient is 1: the weight goes to -1, -2, -3
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update_parameters(model)
        if step == 1:
            VARIANTS[variant](model, average)
    got = model.weight.item()
    assert got == -3.0, f"expected the weight -3.0 after three steps, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
