# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0201"
# title = "load_best_model_at_end loads the best weights on the first node alone"
# kind = "limitation"
# documented = "https://github.com/huggingface/transformers/pull/12421"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/pull/12421",
#     "https://github.com/hiyouga/LlamaFactory/issues/5757",
#     "https://github.com/hiyouga/LlamaFactory/issues/2400",
#     "https://github.com/huggingface/accelerate/issues/3010",
#     "https://github.com/cybertronai/transformer-xl/issues/15",
# ]
# packages = ["transformers"]
# home = "2024-03"
# strategies = ["ddp"]
# processes = 2
# silent = true
#
# [tool.repro.variants.failing]
# about = "two nodes, each with a disk of its own"
# raises = "AssertionError"
# match = "expected the best weight, 1.0, on rank 1, got 3.0"
#
# [tool.repro.variants.fixed]
# about = "save_on_each_node=True: the first rank of each node writes the checkpoints"
# source = "https://github.com/huggingface/transformers/pull/12421"
#
# [tool.repro.variants.shared_folder]
# outcome = "passes"
# about = "a folder that both nodes have"
#
# [tool.repro.variants.broadcast]
# outcome = "passes"
# about = "rank 0 sends its weights to the others after the training"
# source = "https://github.com/cybertronai/transformer-xl/issues/15"
# ///
"""A training on several nodes without a shared disk, with `load_best_model_at_end=True`.

Symptom: after `train()` the first node has the best weights and the others the last ones. Rank 0's log says nothing; the
others warn "Could not locate the best model at ..., if you are running a distributed training on multiple nodes, you
should activate `--save_on_each_node`". An evaluation afterwards mixes the scores of two models, and a second training
begins with weights that DDP does not compare.

Cause: rank 0 alone saves, to its own disk. All ranks agree on the best checkpoint, and each looks for it on the disk of
its node. A rank without the file only warns. With DeepSpeed it raises "Can't find a valid checkpoint at ...".

Fix: `save_on_each_node=True`, or a folder that all nodes share. Or send rank 0's weights to the others.

Watch: no check sees it, since nothing is trained or reduced after the weights part.
"""

import inspect
import os
import sys
import tempfile

import torch
from torch import distributed, nn
from torch.distributed import run
from transformers import Trainer, TrainingArguments

EVALUATION = (
    "eval_strategy" if "eval_strategy" in inspect.signature(TrainingArguments).parameters else "evaluation_strategy"
)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x, labels):
        # A step of the training adds 1; the evaluation is best after the first one.
        return {"loss": -(self.weight * x).mean() if self.training else ((self.weight - labels) ** 2).mean()}


def train(folder="checkpoints", **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        per_device_train_batch_size=1,
        num_train_epochs=3,
        learning_rate=1.0,
        max_grad_norm=0.0,
        optim="sgd",
        lr_scheduler_type="constant",
        save_strategy="epoch",
        load_best_model_at_end=True,
        report_to=[],
        disable_tqdm=True,
        **{EVALUATION: "epoch"},
        **options,
    )
    model, rows = Model(), [{"x": torch.ones(1), "labels": torch.ones(1)}] * 2
    Trainer(model, arguments, train_dataset=rows, eval_dataset=rows).train()
    return model


def failing():
    return train()


def fixed():
    return train(save_on_each_node=True)


def shared_folder():
    folder = [os.getcwd()]
    distributed.broadcast_object_list(folder)  # rank 0's
    return train(folder[0])


def broadcast():
    model = train()
    for value in model.state_dict().values():
        distributed.broadcast(value, src=0)
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, shared_folder, broadcast)}


def on_a_node(variant):
    rank = os.environ["RANK"]
    os.environ["LOCAL_RANK"] = "0"  # each node has one rank
    distributed.init_process_group("gloo")
    with tempfile.TemporaryDirectory() as disk:
        os.chdir(disk)
        got = VARIANTS[variant]().weight.item()
        distributed.barrier()
        os.chdir("/")
    if rank != "0":
        assert got == 1.0, f"expected the best weight, 1.0, on rank {rank}, got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        on_a_node(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
