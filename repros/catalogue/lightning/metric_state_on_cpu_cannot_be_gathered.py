# /// script
# dependencies = ["torch>=2.1", "lightning>=2.0", "torchmetrics>=1.0"]
#
# [tool.repro]
# id = "RPR-0020"
# title = "A metric that keeps its state on the CPU cannot be gathered from GPUs"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/Lightning-AI/torchmetrics/issues/2477",
#     "https://github.com/Lightning-AI/torchmetrics/issues/1088",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/18803",
# ]
# upstream.related = ["https://github.com/Lightning-AI/torchmetrics/pull/2510"]
# packages = ["torchmetrics"]
# requires = ["torch>=2.1"]
# home = "2023-12"
# strategies = ["ddp"]
# devices = ["cuda", "sim"]
# processes = 2
# minimum = 1
#
# [tool.repro.variants.failing]
# about = "compute() of a metric with compute_on_cpu=True"
# finds = ["collective_device_metric", "crash"]
# raises = "RuntimeError"
# match = "No backend type associated with device type cpu"
# frames = ["gather_all_tensors"]
#
# [tool.repro.variants.fixed]
# about = "a dist_sync_fn that moves each state to the device before gathering"
# source = "https://github.com/Lightning-AI/torchmetrics/issues/2477"
#
# [tool.repro.variants.on_device]
# outcome = "passes"
# about = "without compute_on_cpu the state stays on the device"
#
# [tool.repro.variants.both_backends]
# outcome = "passes"
# about = "the default process group has Gloo for the CPU beside the device's own backend"
#
# [tool.repro.variants.not_a_submodule]
# outcome = "fails"
# about = "without compute_on_cpu, but in a plain list of the module, where no move to the device reaches it"
# finds = ["collective_device_metric", "crash"]
# ///
"""Computing a metric whose state is on the CPU ends a run under DDP on GPUs.

Symptom: `RuntimeError: No backend type associated with device type cpu` from the first `Metric.compute()`, with
`compute_on_cpu=True`.

Cause: `Metric._move_list_states_to_cpu` moves list states to the CPU after every update. `Metric._sync_dist` then calls
`gather_all_tensors` on these CPU tensors, in the default process group, which has a backend for GPUs only. A metric
that was never moved to the device fails likewise.

Fix: none in any release. Hand the metric a `dist_sync_fn` that moves states to the device, give the process group a
backend for the CPU, or leave `compute_on_cpu` out.

Apart: here the error comes from `Metric.compute` and from `gather_all_tensors`. In RPR-0001 and RPR-0019 it comes from
`_sync_ddp`, for the plain tensors that `self.log` keeps; `self.log` does not synchronise metrics, whatever its
`sync_dist`.
"""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import distributed, nn
from torch.utils.data import DataLoader
from torchmetrics import CatMetric
from torchmetrics.utilities.distributed import gather_all_tensors


class Model(LightningModule):
    def __init__(self, metric, container=nn.ModuleList):
        super().__init__()
        self.layer, self.metrics = nn.Linear(1, 1), container([metric])

    def training_step(self, batch, batch_idx):
        metric = self.metrics[0]
        metric.update(batch.to(metric.device))
        return self.layer(batch).mean()

    def on_train_epoch_end(self):
        count = self.metrics[0].compute().numel()
        assert count == 8, f"expected 8 values, 4 of each rank, got {count}"

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def failing():
    metric = CatMetric(compute_on_cpu=True)
    return Model(metric)


def fixed():
    def gather(state, group):
        return gather_all_tensors(state.to(metric.device), group)

    metric = CatMetric(compute_on_cpu=True, dist_sync_fn=gather)
    return Model(metric)


def on_device():
    return Model(CatMetric())


def both_backends():
    return failing()


def not_a_submodule():
    return Model(CatMetric(), container=list)


VARIANTS = {v.__name__: v for v in (failing, fixed, on_device, both_backends, not_a_submodule)}


def main(variant="failing", strategy="ddp", accelerator="cuda"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if variant == "both_backends":
        backend = distributed.Backend.default_device_backend_map[accelerator]
        strategy = DDPStrategy(process_group_backend=f"cpu:gloo,{accelerator}:{backend}")  # cpu:gloo,cuda:nccl
    trainer = Trainer(accelerator=accelerator, strategy=strategy, devices="auto", max_epochs=1, barebones=True)
    trainer.fit(VARIANTS[variant](), DataLoader(torch.arange(8.0).unsqueeze(1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
