# /// script
# dependencies = ["torch>=2.1", "lightning>=2.1", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0002"
# title = "accelerate's hooks pin a model's inputs to one device"
# kind = "bug"
# upstream.reports = ["https://github.com/Lightning-AI/pytorch-lightning/issues/20276"]
# upstream.fixed_by = ["https://github.com/huggingface/accelerate/pull/3907"]
# packages = ["accelerate", "lightning"]
# affected = ["accelerate<1.13 or no bitsandbytes>=0.48"]
# requires = ["torch>=2.1", "lightning>=2.1", "accelerate>=0.20"]
# exists = ["accelerate>=0.8"]
# exists_source = "https://github.com/huggingface/accelerate/pull/345"
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cuda", "sim"]
# processes = 2
#
# [tool.repro.variants.failing]
# about = "an 8-bit model is dispatched to the current device before Lightning has chosen the rank's"
# finds = ["inputs_on_other_device", "crash"]
# raises = "RuntimeError"
# match = [
#     "found at least two devices, cuda:1 and cuda:0! (when checking argument for argument mat1 in method wrapper_CUDA_addmm",
#     "but got mat1 is on cuda:0, different from other tensors on cuda:1",
# ]
# frames = ["accelerate/hooks.py:new_forward"]
#
# [tool.repro.variants.fixed]
# about = "load in configure_model, where the rank's device is known"
# source = "https://lightning.ai/docs/pytorch/stable/advanced/model_init.html"
#
# [tool.repro.variants.hooks_removed]
# outcome = "passes"
# about = "remove_hook_from_module(network, recurse=True) after loading"
# source = "https://huggingface.co/docs/accelerate/package_reference/big_modeling"
#
# [tool.repro.variants.no_device_map]
# outcome = "passes"
# about = "an unquantised model that is loaded without a device map"
# source = "https://blog.gitcode.com/768a06d37e4ccb893184e598e32d022e.html"
#
# [tool.repro.variants.inputs_moved]
# outcome = "fails"
# about = "the network's forward moves its input to its weight's device"
# finds = ["inputs_on_other_device", "crash"]
# claim = "x = x.to(self.device) in forward brings the input back"
# source = "https://blog.gitcode.com/768a06d37e4ccb893184e598e32d022e.html"
#
# [tool.repro.variants.nested]
# outcome = "fails"
# about = "the network inside two more modules: hooks sit on each layer with weights, whatever is around it"
# finds = ["inputs_on_other_device", "crash"]
# source = "https://huggingface.co/docs/accelerate/package_reference/big_modeling"
#
# [tool.repro.variants.hooks_checked]
# outcome = "fails"
# about = "a check as the fit begins: compare each hook's execution_device with its layer's parameters"
# raises = "RuntimeError"
# match = "hooks move inputs to another device than the weights'"
# source = "https://huggingface.co/docs/accelerate/package_reference/big_modeling"
#
# [tool.repro.variants.unquantised]
# outcome = "fails"
# about = "the same map without the 8-bit flag, as after removing bitsandbytes"
# affected = ["accelerate<0.21"]
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20276"
#
# [tool.repro.variants.forced_hooks]
# outcome = "fails"
# about = "force_hooks=True brings the hooks back for any model"
# finds = ["inputs_on_other_device", "crash"]
# affected = []
# requires = ["accelerate>=0.21"]
# ///
"""A pretrained model that brought its own device map trains on rank 0 and dies on every other rank.

Symptom: `RuntimeError: Expected all tensors to be on the same device ... cuda:1 and cuda:0`, on all ranks but the
first.

Cause: a model is loaded before Lightning has set the rank's device, so `device_map={"": torch.cuda.current_device()}`
names device 0 on every rank. `accelerate.dispatch_model` then adds an `AlignDevicesHook(execution_device=0)` to the
model and to each layer with weights. Lightning moves the weights to the rank's device; the hooks go on moving the
*inputs* to device 0. bitsandbytes registers no hooks of its own. A `.to()` in `forward` is undone by the hook of the
next layer. accelerate adds hooks for any map of several devices; up to 0.20 for every map; up to 1.12 (or with
bitsandbytes older than 0.48) for models marked as 8-bit.

Fix: load in `configure_model` on `self.trainer.strategy.root_device`, or remove the hooks, or upgrade accelerate.
"""

import sys

import torch
from accelerate import dispatch_model
from accelerate.hooks import remove_hook_from_module
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader


class Network(nn.Module):
    def __init__(self, move_inputs=False):
        super().__init__()
        self.layer, self.move_inputs = nn.Linear(1, 1), move_inputs

    def forward(self, x):
        return self.layer(x.to(self.layer.weight.device) if self.move_inputs else x)


def load(device, network=None, in_8bit=True, **options):
    """Do what from_pretrained(load_in_8bit=True, device_map={"": device}) does when it has made the layers."""
    network = network or Network()
    network.is_loaded_in_8bit = in_8bit
    return dispatch_model(network, {"": device}, **options)


class Training(LightningModule):
    def training_step(self, batch, batch_idx):
        return self.network(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Failing(Training):
    def __init__(self, current, **options):
        super().__init__()
        self.network = load(current, **options)


class HooksChecked(Failing):
    def on_train_start(self):
        for name, layer in self.network.named_modules():
            device = getattr(getattr(layer, "_hf_hook", None), "execution_device", None)
            wrong = [p for p in layer.parameters() if device is not None and p.device != torch.device(device)]
            if wrong:
                raise RuntimeError(f"hooks move inputs to another device than the weights': {name or 'the network'}")


class Fixed(Training):
    def __init__(self, current):
        super().__init__()

    def configure_model(self):
        self.network = load(self.trainer.strategy.root_device)


def hooks_removed(current):
    model = Failing(current)
    remove_hook_from_module(model.network, recurse=True)
    return model


def no_device_map(current):
    model = Training()
    model.network = Network()
    return model


VARIANTS = {
    "failing": Failing,
    "fixed": Fixed,
    "hooks_removed": hooks_removed,
    "no_device_map": no_device_map,
    "inputs_moved": lambda current: Failing(current, network=Network(move_inputs=True)),
    "unquantised": lambda current: Failing(current, in_8bit=False),
    "nested": lambda current: Failing(current, network=nn.Sequential(nn.Sequential(Network()))),
    "hooks_checked": HooksChecked,
    "forced_hooks": lambda current: Failing(current, in_8bit=False, force_hooks=True),
}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = VARIANTS[variant](f"{accelerator}:{getattr(torch, accelerator).current_device()}")  # device 0 on every rank
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices="auto", max_epochs=1, barebones=True)
    trainer.fit(model, DataLoader(torch.ones(8, 1), batch_size=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
