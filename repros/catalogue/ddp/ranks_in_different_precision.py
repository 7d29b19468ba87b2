# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0043"
# title = "DDP averages the gradients of ranks that compute in different precision"
# kind = "misuse"
# documented = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
# upstream.reports = []
# upstream.related = [
#     "https://github.com/pytorch/pytorch/issues/136009",
#     "https://github.com/pytorch/pytorch/issues/150248",
#     "https://github.com/pytorch/pytorch/issues/150433",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["precision_differs"]
#
# [tool.repro.variants.failing]
# about = "rank 0 computes in bfloat16 under autocast, rank 1 in float32"
# raises = "AssertionError"
# match = "expected gradient 1.00390625, the input in full precision, got 1.001953125"
#
# [tool.repro.variants.fixed]
# about = "every rank in the same precision, here float32"
# source = "https://blog.gitcode.com/c1085b104698766dc902ac0117b740b6.html"
#
# [tool.repro.variants.precision_compared]
# outcome = "fails"
# about = "the ranks gather their autocast dtypes before training and compare them: the difference has a name"
# raises = "RuntimeError"
# match = "the ranks compute in different precision"
#
# [tool.repro.variants.weights_in_another_dtype]
# outcome = "fails"
# about = "rank 0's weights in float64: Gloo ends the process in the first collective, as DDP is built"
# ends = "signal SIGABRT"
# ///
"""A job whose ranks disagree about mixed precision trains on: DDP does not compare how its ranks compute.

Symptom: on a mix of GPUs, or with a precision that is chosen from an environment variable on each node, the loss is a
little off and no two set-ups agree. Silent while weights and gradients have one dtype. Where the weights differ in
dtype, Gloo aborts with `op.preamble.length <= op.nbytes. 8 vs 4`; of an all_reduce over NCCL upstream reports tell a
hang (#150433) or a garbage value (#150248), which were not measured here.

Cause: autocast changes the computation, not the parameters: gradients of float32 weights are float32 on every rank.
When it is built, DDP compares the parameters' number and shapes (`_verify_param_shape_across_processes`), never their
dtypes or autocast's state. The reduction averages what it gets.

Fix: decide once, on rank 0, and broadcast it, or compare before training.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(rank):
    return torch.bfloat16 if rank == 0 else None


def fixed(rank):
    return None


def precision_compared(rank):
    dtypes = [None] * distributed.get_world_size()
    distributed.all_gather_object(dtypes, failing(rank))
    if len(set(dtypes)) > 1:
        raise RuntimeError(f"the ranks compute in different precision: {dtypes}")
    return failing(rank)


def weights_in_another_dtype(rank):
    torch.set_default_dtype(torch.float64 if rank == 0 else torch.float32)


VARIANTS = {v.__name__: v for v in (failing, fixed, precision_compared, weights_in_another_dtype)}


def train(variant):
    distributed.init_process_group("gloo")
    dtype = VARIANTS[variant](distributed.get_rank())
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    # The output is w * x: the gradient of w is x, on both ranks 1 + 1/256, which bfloat16 rounds to 1.
    x = torch.full((1, 1), 1.00390625)
    for step in range(2):
        ddp.zero_grad()
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = ddp(x).sum()
        loss.backward()
        got = ddp.module.weight.grad.item()
        message = f"step {step}: expected gradient 1.00390625, the input in full precision, got {got}"
        assert got == 1.00390625, message


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
