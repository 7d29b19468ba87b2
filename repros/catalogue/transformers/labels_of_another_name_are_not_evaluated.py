# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0131"
# title = "Labels of another name: evaluate() has no eval_loss and no compute_metrics"
# kind = "by design"
# documented = "https://huggingface.co/docs/transformers/main_classes/trainer"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/21553",
#     "https://github.com/huggingface/peft/issues/782",
#     "https://github.com/urchade/GLiNER/issues/140",
#     "https://github.com/huggingface/transformers/issues/33420",
# ]
# upstream.related = ["https://github.com/huggingface/transformers/issues/38130"]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["evaluation_without_labels"]
#
# [tool.repro.variants.failing]
# about = "forward(x, targets) returns a loss, and compute_metrics is given"
# raises = "AssertionError"
# match = "of the metrics eval_loss and eval_accuracy expected 2, got 0"
#
# [tool.repro.variants.fixed]
# about = "TrainingArguments(label_names=['targets'])"
# source = "https://github.com/huggingface/transformers/issues/21553"
#
# [tool.repro.variants.renamed]
# outcome = "passes"
# about = "the forward and the data set call them labels"
#
# [tool.repro.variants.loss_only]
# outcome = "fails"
# about = "prediction_loss_only=True, which wants nothing but the loss"
# ///
"""A model calls its labels something that does not contain "label".

Symptom: training works, and `evaluate()` returns times only. Without an error, until `load_best_model_at_end`, early
stopping or a plateau schedule looks for `eval_loss`: KeyError. Silent.

Cause: `Trainer` takes for labels those arguments of `forward` whose names contain "label". A batch without them is
evaluated as one to predict: the loss that the model returns is dropped, and `compute_metrics` is not called.

Fix: `TrainingArguments(label_names=["targets"])`. A wrapper whose forward is `(*args, **kwargs)` hides even `labels`,
and needs it as well. A `PeftModel` without `task_type` is one: transformers 4.48 asks the wrapper for its signature, 4.57
the model inside.
"""

import sys
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x, targets):
        logits = self.layer(x)
        return {"loss": nn.functional.cross_entropy(logits, targets), "logits": logits}


class Renamed(Model):
    def forward(self, x, labels):
        return super().forward(x, labels)


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def evaluate(model, folder, accelerator, name="targets", **options):
    data = [{"x": torch.ones(2), name: 1}] * 2
    arguments = TrainingArguments(folder, use_cpu=accelerator == "cpu", report_to=[], disable_tqdm=True, **options)
    return Trainer(model, arguments, eval_dataset=data, compute_metrics=accuracy).evaluate()


def failing(*where):
    return evaluate(Model(), *where)


def fixed(*where):
    return evaluate(Model(), *where, label_names=["targets"])


def renamed(*where):
    return evaluate(Renamed(), *where, name="labels")


def loss_only(*where):
    return evaluate(Model(), *where, prediction_loss_only=True)


VARIANTS = {v.__name__: v for v in (failing, fixed, renamed, loss_only)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    with tempfile.TemporaryDirectory() as folder:
        metrics = VARIANTS[variant](folder, accelerator)
    got = len({"eval_loss", "eval_accuracy"} & set(metrics))
    assert got == 2, f"of the metrics eval_loss and eval_accuracy expected 2, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
