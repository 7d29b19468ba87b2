# /// script
# dependencies = ["torch>=2.1", "lightning>=2.1"]
#
# [tool.repro]
# id = "RPR-0003"
# title = "A fit inside init_module shuffles with a generator of the wrong device"
# kind = "misuse"
# documented = "https://lightning.ai/docs/pytorch/stable/advanced/model_init.html"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/19373"]
# packages = ["lightning"]
# requires = ["lightning>=2.1", "torch>=2.1"]
# exists = ["lightning>=2.1"]
# exists_source = "https://github.com/Lightning-AI/pytorch-lightning/pull/18004"
# home = "2023-12"
# strategies = ["ddp", "ddp_spawn"]
# cold = ["ddp_spawn"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
#
# [tool.repro.variants.failing]
# about = "model, data loader and fit inside init_module"
# strategies = ["ddp"]
# raises = "RuntimeError"
# match = "Expected a 'cuda' device type for generator but found 'cpu'"
# frames = ["utilities/init.py:__torch_function__"]
#
# [tool.repro.variants.fixed]
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
# claim = "a CPU generator in the data loader cures it"
# source = "https://blog.gitcode.com/dd911f741197e411087698d0ffdbd57d.html"
#
# [tool.repro.variants.cuda_generator]
# outcome = "fails"
# about = "a generator on the device in the loader, outside init_module: an error the other way round"
# strategies = ["ddp"]
# raises = "RuntimeError"
# match = "Expected a 'cpu' device type for generator but found 'cuda'"
# frames = ["utils/data/dataloader.py:__init__"]
# source = "https://github.com/pytorch/pytorch/issues/98792"
#
# [tool.repro.variants.data_inside]
# outcome = "passes"
# about = "the data, too, are made inside init_module, and so on the device; the fit runs outside"
# strategies = ["ddp"]
# claim = "data on the GPU are the cause"
# source = "https://blog.gitcode.com/f6dc9f8460319b68095e140dd4087100.html"
#
# [tool.repro.variants.datamodule]
# outcome = "fails"
# about = "a LightningDataModule in place of the loader, in a fit inside init_module"
# strategies = ["ddp"]
# claim = "a LightningDataModule keeps data and devices apart"
# source = "https://blog.gitcode.com/f6dc9f8460319b68095e140dd4087100.html"
#
# [tool.repro.variants.fast_dev_run]
# outcome = "fails"
# about = "the failing code with fast_dev_run=True: one batch is enough to see it"
# strategies = ["ddp"]
# source = "https://lightning.ai/docs/pytorch/stable/debug/debugging_basic.html"
#
# [tool.repro.variants.unshuffled]
# outcome = "fails"
# about = "shuffle=False: under DDP Lightning's sampler shuffles nevertheless"
# strategies = ["ddp"]
#
# [tool.repro.variants.spawned]
# outcome = "passes"
# about = "the failing code under ddp_spawn: a spawned rank is a fresh interpreter, without init_module's default device"
# strategies = ["ddp_spawn"]
# claim = "ddp forks its ranks and ddp_spawn does not (in fact ddp runs the script again, init_module included)"
# source = "https://blog.gitcode.com/f6dc9f8460319b68095e140dd4087100.html"
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
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
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


class Data(LightningDataModule):
    def train_dataloader(self):
        return DataLoader(DATA, batch_size=2, shuffle=True)


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


def cuda_generator(trainer):
    loader = DataLoader(DATA, batch_size=2, shuffle=True, generator=torch.Generator(trainer.strategy.root_device))
    trainer.fit(Model(), loader)


def data_inside(trainer):
    with trainer.init_module():
        model = Model()
        data = torch.ones(8, 1)
    trainer.fit(model, DataLoader(data, batch_size=2, shuffle=True))


def datamodule(trainer):
    with trainer.init_module():
        trainer.fit(Model(), Data())


def fast_dev_run(trainer):
    failing(trainer)


def unshuffled(trainer):
    failing(trainer, shuffle=False)


def spawned(trainer):
    failing(trainer)


VARIANTS = {
    v.__name__: v
    for v in (
        failing,
        fixed,
        masked,
        loader_inside,
        cpu_generator,
        cuda_generator,
        data_inside,
        datamodule,
        fast_dev_run,
        unshuffled,
        spawned,
    )
}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    trainer = Trainer(
        accelerator=accelerator,
        strategy=strategy,
        devices="auto",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        fast_dev_run=variant == "fast_dev_run",
    )
    VARIANTS[variant](trainer)


if __name__ == "__main__":
    main(*sys.argv[1:])
