# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0024"
# title = "Parameters that a loss does not use stop DDP in the second step"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/17212",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20328",
# ]
# upstream.introduced_by = ["https://github.com/Lightning-AI/pytorch-lightning/pull/16611"]
# upstream.related = [
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/18399",
#     "https://github.com/Lightning-AI/pytorch-lightning/pull/21794",
# ]
# packages = ["lightning"]
# affected = ["lightning>=2.0"]
# home = "2023-12"
# strategies = ["ddp"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "a trainable layer that training_step does not use"
# raises = "RuntimeError"
# match = [
#     "It looks like your LightningModule has parameters that were not used in producing the loss",
#     "Expected to have finished reduction in the prior iteration before starting a new one",
# ]
# frames = ["strategies/strategy.py:training_step", "strategies/ddp.py:training_step"]
#
# [tool.repro.variants.fixed]
# about = "strategy='ddp_find_unused_parameters_true'"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17212"
#
# [tool.repro.variants.static_graph]
# outcome = "passes"
# about = "DDPStrategy(find_unused_parameters=True, static_graph=True), where every step uses the same layers"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17212"
#
# [tool.repro.variants.frozen]
# outcome = "passes"
# about = "requires_grad_(False) for the layer before the fit"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/17212"
#
# [tool.repro.variants.left_out_of_optimizer]
# outcome = "fails"
# about = "the optimizer gets the used layer alone: DDP looks at requires_grad, not at optimizers"
#
# [tool.repro.variants.alternating]
# outcome = "fails"
# about = "manual optimisation of two layers in turn, as in a GAN, with toggle_optimizer"
# ///
"""With a layer that the loss does not depend on, DDP takes one step and fails in the second.

Symptom: `RuntimeError: It looks like your LightningModule has parameters that were not used in producing the loss
returned by training_step` at the second batch, in code that runs on one GPU and ran under Lightning 1.9. A fit of one
batch succeeds.

Cause: DDP's reducer waits for a gradient of every parameter that required one when the model was wrapped, and
`Reducer::ensure_prior_reduction_finished` raises in the next forward when one never came. Until Lightning 1.9
`DDPStrategy` let DDP look for unused parameters; 2.0 left that to DDP's own default, which is not to look. Lightning
replaces torch's message with its own in `DDPStrategy.on_exception`; up to 2.0 it could not on Python 3.11. In a GAN,
the layer that waits for its turn is unused, too.

Fix: freeze the layers that are not to be trained, use the others in the loss, or let DDP look for unused parameters, at
the price of a walk through the graph in every step.

Apart: if training_step does use the parameters, runs under autocast, and called them under `no_grad` before in the same
step, the cause is RPR-0011: the graph does not reach them. Letting DDP look for unused parameters then hides it.
Without Lightning this is RPR-0179, which has more of the ways to it.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(1, 1), nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.used(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class UsedOnly(Model):
    def configure_optimizers(self):
        return torch.optim.SGD(self.used.parameters(), 0.01)


class Alternating(Model):
    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        for layer, optimizer in zip((self.used, self.unused), self.optimizers()):
            self.toggle_optimizer(optimizer)
            optimizer.zero_grad()
            self.manual_backward(layer(batch).mean())
            optimizer.step()
            self.untoggle_optimizer(optimizer)

    def configure_optimizers(self):
        return [torch.optim.SGD(layer.parameters(), 0.01) for layer in (self.used, self.unused)]


def failing(strategy):
    return Model(), strategy


def fixed(strategy):
    return Model(), f"{strategy}_find_unused_parameters_true"


def static_graph(strategy):
    return Model(), DDPStrategy(find_unused_parameters=True, static_graph=True)


def frozen(strategy):
    model = Model()
    model.unused.requires_grad_(False)
    return model, strategy


def left_out_of_optimizer(strategy):
    return UsedOnly(), strategy


def alternating(strategy):
    return Alternating(), strategy


VARIANTS = {v.__name__: v for v in (failing, fixed, static_graph, frozen, left_out_of_optimizer, alternating)}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model, strategy = VARIANTS[variant](strategy)
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices=2, max_epochs=1, barebones=True)
    trainer.fit(model, DataLoader(torch.ones(4, 1)))  # two batches for each rank


if __name__ == "__main__":
    main(*sys.argv[1:])
