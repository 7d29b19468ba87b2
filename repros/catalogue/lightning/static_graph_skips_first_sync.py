# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0007"
# title = "static_graph and manual optimisation leave the first gradients unsynchronised"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18086",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20704",
# ]
# upstream.fixed_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/21251"]
# packages = ["lightning"]
# affected = ["lightning<2.6"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
# silent = true
# finds = ["gradients_differ_static_graph"]
#
# [tool.repro.variants.failing]
# about = "manual optimisation under DDPStrategy(static_graph=True)"
# raises = "AssertionError"
# match = [
#     "step 0: expected gradient 2.0, the mean of 1 and 3, got 1.0",
#     "step 0: expected gradient 2.0, the mean of 1 and 3, got 3.0",
# ]
#
# [tool.repro.variants.fixed]
# about = "static_graph left off (or Lightning 2.6)"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/21251"
#
# [tool.repro.variants.automatic]
# outcome = "passes"
# about = "static_graph with automatic optimisation"
# ///
"""With a static graph and manual optimisation the first step is taken on each rank's own gradients.

Symptom: the ranks' parameters differ from the first step on and stay apart; the loss is that of a wrong model. Silent.

Cause: in its first iteration with a static graph DDP reduces nothing while backward runs, but queues
`Reducer._delay_all_reduce` after it, in `DistributedDataParallel.forward`. For manual optimisation Lightning turns
`require_backward_grad_sync` off around that forward and prepares the reducer itself in `DDPStrategy.pre_backward`, so
the call is never queued. From the second iteration on gradients are reduced, but DDP never makes parameters equal
again.

Fix: Lightning 2.6 calls `_delay_all_reduce` in `post_backward`. Before: do not combine the two.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    """A model with output w * x: the gradient of w is x, which is 1 on rank 0 and 3 on rank 1."""

    def __init__(self, automatic):
        super().__init__()
        self.automatic_optimization = automatic
        self.layer = nn.Linear(1, 1, bias=False)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch * (1 + 2 * self.global_rank)).mean()
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        got, rank = self.layer.weight.grad.item(), self.global_rank
        assert got == 2.0, f"step {batch_idx}: expected gradient 2.0, the mean of 1 and 3, got {got} on rank {rank}"

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    return Model(automatic=False), DDPStrategy(static_graph=True)


def fixed():
    return Model(automatic=False), DDPStrategy()


def automatic():
    return Model(automatic=True), DDPStrategy(static_graph=True)


VARIANTS = {v.__name__: v for v in (failing, fixed, automatic)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, strategy = VARIANTS[variant]()
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, max_epochs=1, barebones=True)
    trainer.fit(model, DataLoader(torch.ones(4, 1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
