# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0183"
# title = "A rank that stops early by its own loss leaves the others waiting in DDP"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/notes/ddp.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/379",
#     "https://github.com/speechbrain/speechbrain/pull/2051",
#     "https://github.com/ultralytics/yolov5/pull/8345",
#     "https://github.com/webdataset/webdataset/issues/446",
#     "https://github.com/ppln-team/ppln/pull/43",
# ]
# packages = ["torch"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# deadline = 45
#
# [tool.repro.variants.failing]
# about = "each rank breaks the loop when its own loss is below a threshold, and all meet at a barrier"
# ends = "hang"
#
# [tool.repro.variants.fixed]
# about = "the ranks reduce the loss before they decide"
# source = "https://github.com/speechbrain/speechbrain/pull/2051"
#
# [tool.repro.variants.broadcast]
# outcome = "passes"
# about = "rank 0 decides, and broadcasts its decision"
# source = "https://github.com/ultralytics/yolov5/pull/8345"
#
# [tool.repro.variants.rank_zero_stops]
# outcome = "fails"
# about = "rank 0 alone decides, and tells nobody"
# ///
"""Early stopping in a loop of one's own, which stops one rank.

Symptom: the training stands still near its end, with the GPU at 0 or 100 %, until the process group's timeout. A rank
prints that it stops early, and the others print nothing more. On Gloo they raise `Connection closed by peer` if the rank
ends its process instead.

Cause: every backward under DDP is a collective. The loss of a rank is of its own share of the data, so the ranks fall
below a threshold, or run out of patience, in different steps. The one that leaves goes on to a barrier, a checkpoint or
its end, and the others wait for it in the reduction of the gradients.

Fix: make the decision a common one: reduce the value that it depends on, or broadcast rank 0's decision, in every
round, before the branch. A value that all ranks have computed from the same reduced metric needs no more.

Apart: RPR-0104 is the same for callbacks of Lightning, RPR-0025 for steps that one rank skips.

Watch: `ranks_wait_apart` finds it, whatever the cause is, and so cannot name it.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.distributed import run
from torch.nn.parallel import DistributedDataParallel


def failing(loss):
    return loss.item() < 0.5


def fixed(loss):
    mean = loss.detach().clone()
    distributed.all_reduce(mean)
    return mean.item() / distributed.get_world_size() < 0.5


def broadcast(loss):
    decision = torch.tensor(int(loss.item() < 0.5))
    distributed.broadcast(decision, src=0)
    return bool(decision)


def rank_zero_stops(loss):
    return distributed.get_rank() == 0 and loss.item() < 0.5


VARIANTS = {v.__name__: v for v in (failing, fixed, broadcast, rank_zero_stops)}


def train(variant):
    distributed.init_process_group("gloo")
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    share = torch.ones(1, 1) * (1 if distributed.get_rank() == 0 else 3)  # rank 0 has the smaller losses
    for _ in range(6):
        loss = ddp(share).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if VARIANTS[variant](loss):
            break
    distributed.barrier()


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
