"""Time epochs of Lightning on sim and on the CPU in turn, and print JSON; runs on simulated GPUs.

Usage: python epoch.py ROUNDS [--on-one-core]
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import warnings
from typing import Any

BATCHES = 50
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
EPOCHS_A_ROUND = {"perceptron": 40}
"""A short epoch is timed more often: what else the machine does in a moment is a large part of it."""


def main(rounds: int) -> None:
    """Print the seconds of each epoch by clock, network and device, without the first of each."""
    import torch

    torch.set_num_threads(1)  # threads that wait for each other on a busy machine would count as cost of sim
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    seconds: dict[str, dict[str, dict[str, list[float]]]] = {
        clock: {name: {"sim": [], "cpu": []} for name in NETWORKS} for clock in CLOCKS
    }
    for name in NETWORKS:
        for number in range(rounds * EPOCHS_A_ROUND.get(name, 1) + 1):
            for device, accelerator in (("sim", "cuda"), ("cpu", "cpu")):
                seconds_by_clock = time_epoch(name, accelerator)
                for clock, each in seconds.items():
                    if number:
                        each[name][device].append(round(seconds_by_clock[clock], 4))
    print(json.dumps({"batches": BATCHES, "seconds": seconds}))


def time_epoch(name: str, device: str) -> dict[str, float]:
    """Train a new network for one epoch; return the seconds that its batches took, by clock."""
    import lightning.pytorch as pl
    import torch

    class Module(pl.LightningModule):  # type: ignore[misc] # mypy does not see Lightning
        def __init__(self) -> None:
            super().__init__()
            self.network, self.shape = NETWORKS[name]()
            self.began: dict[str, float] = {}
            self.took: dict[str, float] = {}

        def training_step(self, batch: Any, index: int) -> Any:
            images, labels = batch
            return torch.nn.functional.cross_entropy(self.network(images), labels)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

        def on_train_epoch_start(self) -> None:
            self.began = {clock: read() for clock, read in CLOCKS.items()}

        def on_train_epoch_end(self) -> None:
            self.took = {clock: read() - self.began[clock] for clock, read in CLOCKS.items()}

    module = Module()
    batch = 32
    data = torch.utils.data.TensorDataset(
        torch.randn(BATCHES * batch, *module.shape), torch.randint(10, (BATCHES * batch,))
    )
    off = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(
        accelerator=device, devices=1, max_epochs=1, enable_model_summary=False, use_distributed_sampler=False, **off
    )
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=batch))
    return module.took


def perceptron() -> Any:
    """Build small layers: the cost of a call dominates."""
    import torch

    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU()] * 3
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 10)), (64,)


def convolutions() -> Any:
    """Build convolutions over images of 32 by 32: arithmetic dominates."""
    import torch

    layers: list[Any] = []
    for before, after in ((3, 32), (32, 64), (64, 64)):
        layers += [torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
        layers += [torch.nn.MaxPool2d(2)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 16, 10)), (3, 32, 32)


def transformer() -> Any:
    """Build two layers of a transformer over 64 tokens of 128 numbers each."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    head = [torch.nn.Flatten(), torch.nn.Linear(64 * 128, 10)]
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2), *head), (64, 128)


NETWORKS = {"perceptron": perceptron, "convolutions": convolutions, "transformer": transformer}

if __name__ == "__main__":
    if "--on-one-core" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main(int(sys.argv[1]))
