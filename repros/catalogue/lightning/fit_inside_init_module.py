# /// script
# requires-python = ">=3.9"
# dependencies = ["torch>=2.1", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0003"
# title = "A fit inside init_module shuffles with a generator of the wrong device"
# kind = "misuse"
# documented = "https://lightning.ai/docs/pytorch/stable/advanced/model_init.html"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19373"]
# packages = ["lightning"]
# affected = []
# requires = ["lightning>=2.1", "torch>=2.1"]
# home = "2023-12"
# strategies = ["ddp", "ddp_spawn"]
# cold = ["ddp_spawn"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
# pasted.texts = ["Expected a 'cuda:0' generator device but found 'cpu'"]
# pasted.words = ["init_module", "lightning"]
# pasted.other_causes = [
#     "a default device or tensor type of CUDA in the program: look at set_default_device, set_default_tensor_type and the loader's generator",
# ]
#
# [tool.repro.variants.failing]
# outcome = "fails"
# about = "model, data loader and fit inside init_module"
# strategies = ["ddp"]
# raises = "RuntimeError"
# match = "Expected a 'cuda' device type for generator but found 'cpu'"
# frames = ["utilities/init.py:__torch_function__"]
#
# [tool.repro.variants.fixed]
# outcome = "passes"
# about = "only the model is made inside init_module"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/19373"
#
# [tool.repro.variants.masked]
# outcome = "fails"
# about = "with a loader worker: teardown asks the unstarted loader for its length, and that error hides the first"
# strategies = ["ddp"]
#
# [tool.repro.variants.loader_inside]
# outcome = "passes"
# about = "model and data loader are made inside init_module, the fit runs outside"
# strategies = ["ddp"]
#
# [tool.repro.variants.cpu_generator]
# outcome = "fails"
# about = "the data loader has a CPU generator of its own"
# strategies = ["ddp"]
# claim = "the data loader must not have a CUDA generator"
#
# [tool.repro.variants.unshuffled]
# outcome = "fails"
# about = "shuffle=False: under DDP Lightning's sampler shuffles nevertheless"
# strategies = ["ddp"]
# claim = "without shuffling no generator is needed"
#
# [tool.repro.variants.spawned]
# outcome = "passes"
# about = "the failing code under ddp_spawn: a spawned rank is a fresh interpreter, without init_module's default device"
# strategies = ["ddp_spawn"]
# claim = "ddp forks its ranks and ddp_spawn does not (in fact ddp runs the script again, init_module included)"
# ///
"""`Trainer.init_module` is for making a model; whatever else runs inside it makes its tensors on the GPU, too.

Symptom: `RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'` as the first epoch begins. With
loader workers it is the `__context__` of `RuntimeError: Please call iter(combined_loader) first.`

Cause: `Trainer.init_module` makes the rank's device the default of tensor factories. In a fit inside it, the sampler's
`torch.randperm(n, generator=g)` puts its result on that device, while its generator is on the CPU. Making the loader
inside is harmless, and a generator passed to the loader does not matter: under DDP Lightning inserts its own
`DistributedSampler`, which shuffles even if the loader did not. Under `ddp` each rank runs the whole script and so
enters `init_module`; a rank of `ddp_spawn` gets only the pickled model and never does, which is why it passes.

Fix: leave `init_module` before fitting.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader

DATA = torch.ones(8, 1)


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing(trainer, **options):
    with trainer.init_module():
        model = Model()
        loader = DataLoader(DATA, batch_size=2, **{"shuffle": True, **options})
        trainer.fit(model, loader)


def fixed(trainer):
    with trainer.init_module():
        model = Model()
    loader = DataLoader(DATA, batch_size=2, shuffle=True)
    trainer.fit(model, loader)


def masked(trainer):
    failing(trainer, num_workers=1)


def loader_inside(trainer):
    with trainer.init_module():
        model = Model()
        loader = DataLoader(DATA, batch_size=2, shuffle=True)
    trainer.fit(model, loader)


def cpu_generator(trainer):
    failing(trainer, generator=torch.Generator("cpu"))


def unshuffled(trainer):
    failing(trainer, shuffle=False)


def spawned(trainer):
    failing(trainer)


VARIANTS = (failing, fixed, masked, loader_inside, cpu_generator, unshuffled, spawned)


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    variants = {v.__name__: v for v in VARIANTS}
    if variant not in variants:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(variants)}")
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices="auto", max_epochs=1, **quiet)
    variants[variant](trainer)


if __name__ == "__main__":
    main(*sys.argv[1:])
