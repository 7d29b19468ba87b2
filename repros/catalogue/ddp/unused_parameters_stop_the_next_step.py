# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0179"
# title = "Plain DDP stops in the step after one whose loss did not use all parameters"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/22049",
#     "https://github.com/pytorch/pytorch/issues/68862",
#     "https://github.com/huggingface/accelerate/issues/188",
#     "https://github.com/huggingface/accelerate/issues/1191",
#     "https://github.com/joanaapa/Distillation-DNABERT-Promoter/issues/1",
#     "https://github.com/megvii-research/AnchorDETR/issues/6",
#     "https://github.com/open-mmlab/mmdetection3d/issues/488",
#     "https://github.com/princeton-nlp/SimCSE/pull/78",
#     "https://github.com/ShiqiYu/OpenGait/issues/230",
#     "https://github.com/ultralytics/ultralytics/issues/5821",
# ]
# upstream.related = [
#     "https://github.com/pytorch/pytorch/pull/19895",
#     "https://github.com/pytorch/pytorch/issues/79171",
#     "https://github.com/pytorch/pytorch/issues/97030",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "a trainable layer that forward never uses"
# raises = "RuntimeError"
# match = "Expected to have finished reduction in the prior iteration before starting a new one"
# frames = ["parallel/distributed.py:_pre_forward", "parallel/distributed.py:forward"]
#
# [tool.repro.variants.fixed]
# about = "DistributedDataParallel(find_unused_parameters=True)"
# source = "https://github.com/pytorch/pytorch/issues/68862"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "DistributedDataParallel(static_graph=True), where every step uses the same layers"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
#
# [tool.repro.variants.frozen]
# outcome = "passes"
# about = "requires_grad_(False) for the layer before the wrapping"
# source = "https://github.com/facebookresearch/ClassyVision/pull/398"
#
# [tool.repro.variants.times_zero]
# outcome = "passes"
# about = "forward uses every parameter, times zero"
# source = "https://github.com/pytorch/pytorch/issues/90171"
#
# [tool.repro.variants.frozen_after_wrapping]
# outcome = "fails"
# about = "requires_grad_(False) for the layer after the wrapping, as in the middle of a training"
# claim = "layers that are frozen while the model trains need no gradient any more"
# source = "https://github.com/ShiqiYu/OpenGait/issues/230"
#
# [tool.repro.variants.branch]
# outcome = "fails"
# about = "a layer that forward uses in every second step"
#
# [tool.repro.variants.branch_found]
# outcome = "passes"
# about = "the same with find_unused_parameters=True"
# source = "https://github.com/huggingface/accelerate/issues/1191"
#
# [tool.repro.variants.branch_static_graph]
# outcome = "fails"
# about = "the same with static_graph=True"
# raises = "RuntimeError"
# match = "Your training graph has changed in this iteration"
# claim = "static_graph=True does for parameters that some steps do not use"
# source = "https://github.com/huggingface/transformers/pull/45519"
#
# [tool.repro.variants.unused_output]
# outcome = "fails"
# about = "forward returns two outputs, and the loss uses one"
#
# [tool.repro.variants.unused_output_found]
# outcome = "passes"
# about = "the same with find_unused_parameters=True"
# source = "https://github.com/pytorch/pytorch/issues/68862"
#
# [tool.repro.variants.unused_output_static_graph]
# outcome = "fails"
# about = "the same with static_graph=True"
# claim = "with static_graph=True find_unused_parameters does not matter"
# source = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# ///
"""A model that trains on one GPU takes one step under DDP, and raises in the second.

Symptom: `RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error
indicates that your module has parameters that were not used in producing loss`, from the forward of the next step. With
TORCH_DISTRIBUTED_DEBUG=DETAIL it names the parameters.

Cause: DDP's reducer waits for a gradient of every parameter that required one when the module was wrapped.
`Reducer::ensure_prior_reduction_finished` raises in the next forward when one never came: of a layer that forward does
not use or a branch that it did not take, or behind an output that the loss leaves out. DDP looks at requires_grad only
when it wraps.

Fix: remove or freeze what is never used before the model is wrapped, or wrap it again afterwards; or let DDP look for
it, at the price of a walk through the graph in every step. In accelerate that is
DistributedDataParallelKwargs(find_unused_parameters=True), in transformers ddp_find_unused_parameters=True. A static
graph is cheaper, if all steps use the same parameters and every output is used: it counts in the first step, and raises
in a later one that differs.

Apart: RPR-0024 is the same in a LightningModule. If autocast surrounds a forward under no_grad and another, it may be
RPR-0011, where every parameter is used.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x, step):
        return self.used(x)


class TimesZero(Model):
    def forward(self, x, step):
        return self.used(x) + 0 * sum(parameter.sum() for parameter in self.parameters())


class Branch(Model):
    def forward(self, x, step):
        return self.other(self.used(x)) if step % 2 else self.used(x)


class TwoOutputs(Model):
    def forward(self, x, step):
        return self.used(x), self.other(x)  # the loss takes the first


def failing():
    return DistributedDataParallel(Model())


def fixed():
    return DistributedDataParallel(Model(), find_unused_parameters=True)


def static_graph():
    return DistributedDataParallel(Model(), static_graph=True)


def frozen():
    model = Model()
    model.other.requires_grad_(False)
    return DistributedDataParallel(model)


def times_zero():
    return DistributedDataParallel(TimesZero())


def frozen_after_wrapping():
    ddp = DistributedDataParallel(Model())
    ddp.module.other.requires_grad_(False)
    return ddp


def branch():
    return DistributedDataParallel(Branch())


def branch_found():
    return DistributedDataParallel(Branch(), find_unused_parameters=True)


def branch_static_graph():
    return DistributedDataParallel(Branch(), static_graph=True)


def unused_output():
    return DistributedDataParallel(TwoOutputs())


def unused_output_found():
    return DistributedDataParallel(TwoOutputs(), find_unused_parameters=True)


def unused_output_static_graph():
    return DistributedDataParallel(TwoOutputs(), static_graph=True)


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        fixed,
        static_graph,
        frozen,
        times_zero,
        frozen_after_wrapping,
        branch,
        branch_found,
        branch_static_graph,
        unused_output,
        unused_output_found,
        unused_output_static_graph,
    )
}


def train(variant):
    distributed.init_process_group("gloo")
    ddp = VARIANTS[variant]()
    for step in range(4):  # a static graph is known after the first step, and compared from the third on
        ddp(torch.ones(1, 1), step)[0].sum().backward()


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
