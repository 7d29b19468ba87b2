# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0040"
# title = "DDP stops synchronising once its module has changed dtype or device"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/104336",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17937",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cpu", "cuda", "sim"]
# processes = 2
# silent = true
# finds = ["gradients_differ_converted"]
#
# [tool.repro.variants.failing]
# about = "wrap, train, and convert the module to float64 and back, as for an export or an evaluation"
# devices = ["cpu"]
# raises = "AssertionError"
# match = [
#     "expected gradient 2.0, the mean of 1 and 3, got 1.0",
#     "expected gradient 2.0, the mean of 1 and 3, got 3.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "wrap the converted module anew"
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/104336"
#
# [tool.repro.variants.same_dtype]
# outcome = "passes"
# contrast = true
# about = "a conversion to the dtype that the module has changes nothing"
# devices = ["cpu"]
#
# [tool.repro.variants.converted_copy]
# outcome = "passes"
# about = "convert a deep copy, and leave the module that DDP has wrapped alone"
# devices = ["cpu"]
#
# [tool.repro.variants.moved_to_the_cpu_and_back]
# outcome = "fails"
# about = "move the module to the CPU and back, to make room on the GPU"
# devices = ["cuda", "sim"]
# requires = ["torch>=2.1"]  # sim has no collectives before
# source = "https://github.com/pytorch/pytorch/issues/104336"
# ///
"""A wrapped model that is moved to the CPU and back, or to another dtype, trains on each rank alone from then on.

Symptom: gradients and weights differ between the ranks after something moved the model for a while: an index that
needed the GPU's memory, an export in another precision. Silent.

Cause: DDP's reducer keeps a hook on each parameter's `AccumulateGrad` node, which it takes when the module is wrapped.
`Module.to` sets `parameter.data`; where the new data has another dtype or device, `VariableHooks::set_data` in
torch/csrc/autograd drops that node, and the next forward makes another, without the hook. No reduction begins, and
nothing waits for one. DDP's documentation warns of changing "your model's parameters after wrapping", and does not say
that a move is such a change.

Fix: convert or move before wrapping, wrap anew afterwards, or work on a copy.
"""

import copy
import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(ddp):
    ddp.double()
    ddp.float()
    return ddp


def fixed(ddp):
    ddp.double()
    ddp.float()
    return DistributedDataParallel(ddp.module)


def same_dtype(ddp):
    return ddp.float()


def converted_copy(ddp):
    copy.deepcopy(ddp.module).double()
    return ddp


def moved_to_the_cpu_and_back(ddp):
    device = ddp.module.weight.device
    ddp.cpu()
    return ddp.to(device)


VARIANTS = {v.__name__: v for v in (failing, fixed, same_dtype, converted_copy, moved_to_the_cpu_and_back)}


def train(variant, accelerator):
    distributed.init_process_group(
        "gloo" if accelerator == "cpu" else distributed.Backend.default_device_backend_map[accelerator]
    )
    rank = distributed.get_rank()
    device = torch.device(accelerator) if accelerator == "cpu" else torch.device(accelerator, rank)
    # Its output is w * x: the gradient of w is x, 1 on rank 0 and 3 on rank 1.
    x = torch.full((1, 1), 1.0 + 2.0 * rank, device=device)
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False, device=device))
    ddp(x).sum().backward()
    ddp = VARIANTS[variant](ddp)
    for step in range(2):
        ddp.zero_grad()
        ddp(x).sum().backward()
        got = ddp.module.weight.grad.item()
        assert got == 2.0, f"step {step}: expected gradient 2.0, the mean of 1 and 3, got {got} on rank {rank}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
