# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0203"
# title = "A resume without the average of the weights begins it anew (EMA)"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/optim.html"
# upstream.reports = [
#     "https://github.com/ai2cm/ace/issues/349",
#     "https://github.com/m2lines/Samudra/issues/282",
#     "https://github.com/ultralytics/yolov5/issues/310",
#     "https://github.com/Megvii-BaseDetection/YOLOX/issues/1318",
#     "https://github.com/Vchitect/Latte/issues/55",
#     "https://github.com/Benzoin96485/Enerzyme/issues/36",
#     "https://github.com/lightly-ai/lightly-train/pull/892",
#     "https://github.com/ai2cm/ace/pull/819",
# ]
# upstream.related = ["https://github.com/fadel/pytorch_ema/pull/6"]
# packages = ["torch"]
# home = "2023-12"
# silent = true
# finds = ["average_begun_anew"]
#
# [tool.repro.variants.failing]
# about = "model and optimizer are loaded, and an AveragedModel is made of the loaded model"
# raises = "AssertionError"
# match = "expected the weight and its average [10.0, 7.0], got [10.0, 8.0]"
#
# [tool.repro.variants.fixed]
# about = "the average's state dict is saved and loaded, too"
# source = "https://github.com/ai2cm/ace/issues/349"
#
# [tool.repro.variants.without_the_number]
# outcome = "fails"
# about = "the average's weights are loaded without n_averaged: the first update overwrites them"
#
# [tool.repro.variants.average_as_model]
# outcome = "fails"
# finds = []
# claim = "the average is the best of the weights, and so the right model to go on from"
# about = "the average is loaded as the model, too"
# raises = "AssertionError"
# match = "expected the weight and its average [10.0, 7.0], got [9.0, 6.25]"
# source = "https://github.com/Vchitect/Latte/issues/55"
# ///
"""A training with an average of its weights (EMA) that is resumed without the average.

Symptom: the resumed training's loss goes on as before, and the validation, which uses the average, is worse for a long
time. Silent. With a decay of 0.9999 an average that began anew follows the weights of the last minutes only.

Cause: the average's weights and its number of updates are in an object of their own, in no state dict of the model. One
that is made after the resume begins with the loaded weights. `AveragedModel.update_parameters` even copies them if
`n_averaged` is 0, so that weights without this number are lost in the first step, as with an own class whose number of
updates is a plain integer. A checkpoint of the average alone is made for inference: a training that goes on with it has
older weights.

Fix: both in the checkpoint: the model's weights, and `averaged.state_dict()`, which has the number of updates.

Watch: `average_begun_anew` does not see `average_as_model`: the average that is loaded as the model is a load like any
other.
"""

import io
import sys

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


class Run:
    def __init__(self):
        self.model = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0, momentum=1.0)
        self.average = AveragedModel(self.model, avg_fn=lambda average, new, updates: (average + new) / 2)

    def steps(self, number):  # the first adds 1 to the weight, the second 2, and so on
        for _ in range(number):
            self.optimizer.zero_grad()
            (-self.model(torch.ones(1, 1))).sum().backward()
            self.optimizer.step()
            self.average.update_parameters(self.model)

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict(),
        }


def failing(run, checkpoint):
    run.model.load_state_dict(checkpoint["model"])
    run.optimizer.load_state_dict(checkpoint["optimizer"])
    run.average = AveragedModel(run.model, avg_fn=run.average.avg_fn)


def fixed(run, checkpoint):
    failing(run, checkpoint)
    run.average.load_state_dict(checkpoint["average"])


def without_the_number(run, checkpoint):
    failing(run, checkpoint)
    del checkpoint["average"]["n_averaged"]
    run.average.load_state_dict(checkpoint["average"], strict=False)


def average_as_model(run, checkpoint):
    fixed(run, checkpoint)
    run.model.load_state_dict(run.average.module.state_dict())


VARIANTS = {v.__name__: v for v in (failing, fixed, without_the_number, average_as_model)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    first, file = Run(), io.BytesIO()
    first.steps(2)
    torch.save(first.state(), file)
    file.seek(0)
    resumed = Run()
    VARIANTS[variant](resumed, torch.load(file))
    resumed.steps(2)
    first.steps(2)  # the training that was not interrupted
    expected, got = ([run.model.weight.item(), run.average.module.weight.item()] for run in (first, resumed))
    assert got == expected, f"expected the weight and its average {expected}, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
