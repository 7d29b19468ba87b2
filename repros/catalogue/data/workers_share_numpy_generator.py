# /// script
# dependencies = ["torch>=2.0", "numpy"]
#
# [tool.repro]
# id = "RPR-0085"
# title = "A data set's NumPy generator repeats its draws in each worker and epoch"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/notes/randomness.html#dataloader"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/5059",
#     "https://github.com/pytorch/pytorch/issues/41329",
#     "https://github.com/xingyizhou/CenterNet/issues/233",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "np.random.default_rng in the dataset, two workers, two epochs"
# raises = "AssertionError"
# match = "expected 8 different augmentations, got 2"
#
# [tool.repro.variants.fixed]
# about = "make the generator in worker_init_fn, from the worker's seed"
# source = "https://pytorch.org/docs/stable/notes/randomness.html#dataloader"
#
# [tool.repro.variants.seeded_by_worker]
# outcome = "fails"
# about = "seed it with the worker's number: each epoch begins anew"
# raises = "AssertionError"
# match = "expected 8 different augmentations, got 4"
# ///
"""Augmentations repeat: two workers draw the same ones, and each epoch draws those of the first.

Symptom: a batch's samples come in pairs with equal crops and flips, and the next epoch has the same again. Silent.

Cause: each worker gets a copy of the dataset with its generator, in the state in which the main process has it, and the
next epoch's workers get the same once more. PyTorch seeds `torch` and `random` in each worker, and NumPy's global state
from some release on, but no generator that a dataset holds.

Fix: a `worker_init_fn` that makes the generator from `torch.initial_seed()`, which differs for each worker and epoch.

Watch: no check sees it, since a generator that a data set keeps is known to the data set alone.
"""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Augmented(Dataset):
    def __init__(self):
        self.generator = np.random.default_rng(0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.generator.integers(10**9)


def failing():
    return None


def by_seed(worker):
    get_worker_info().dataset.generator = np.random.default_rng(torch.initial_seed())


def fixed():
    return by_seed


def by_number(worker):
    get_worker_info().dataset.generator = np.random.default_rng(worker)


def seeded_by_worker():
    return by_number


VARIANTS = {v.__name__: v for v in (failing, fixed, seeded_by_worker)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    loader = DataLoader(Augmented(), num_workers=2, worker_init_fn=VARIANTS[variant]())
    drawn = []
    for _ in range(2):
        for batch in loader:
            drawn.append(int(batch))
            optimizer.zero_grad()
            layer(batch.float().unsqueeze(1)).sum().backward()
            optimizer.step()
    got = len(set(drawn))
    assert got == 8, f"expected 8 different augmentations, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
