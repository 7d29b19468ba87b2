# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0087"
# title = "Persistent workers never see what is set on the data set later"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader"
# upstream.reports = [
#     "https://github.com/huggingface/datasets/issues/6673",
#     "https://github.com/pytorch/pytorch/issues/97326",
#     "https://github.com/starVLA/starVLA/pull/471",
#     "https://github.com/ByteDance-Seed/VeOmni/pull/940",
# ]
# upstream.related = ["https://github.com/huggingface/datasets/pull/6710"]
# packages = ["torch"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "set the dataset's epoch before each epoch, with persistent_workers=True"
# raises = "AssertionError"
# match = "expected the epochs [0, 1, 2], got [0, 0, 0]"
#
# [tool.repro.variants.fixed]
# about = "keep the epoch in a tensor in shared memory"
# source = "https://github.com/huggingface/datasets/issues/6673"
#
# [tool.repro.variants.new_workers]
# outcome = "passes"
# about = "without persistent_workers each epoch starts new workers, with a new copy of the dataset"
#
# [tool.repro.variants.set_through_the_loader]
# outcome = "fails"
# about = "set it on loader.dataset, which is the same object of the main process"
# ///
"""A curriculum, a shuffle or an augmentation that depends on the epoch stays at the first one.

Symptom: `dataset.set_epoch(n)` or `dataset.strength = x` has no effect from the second epoch on. Silent.

Cause: a loader's workers get a copy of the dataset when they start. With `persistent_workers=True` they start once;
what the main process changes later reaches none of the copies.

Fix: hold such a value in shared memory, `torch.tensor(0).share_memory_()`, or do without persistent workers. The
`IterableDataset` of Hugging Face holds its epoch so since datasets 2.21: there an update is enough.

Watch: no check sees it, since what a data set does with an attribute is known to the data set alone.
"""

import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Epochs(Dataset):
    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return int(self.epoch)


class SharedEpochs(Epochs):
    def __init__(self):
        self.epoch = torch.tensor(0).share_memory_()

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)


def failing():
    dataset = Epochs()
    return DataLoader(dataset, num_workers=1, persistent_workers=True), dataset


def fixed():
    dataset = SharedEpochs()
    return DataLoader(dataset, num_workers=1, persistent_workers=True), dataset


def new_workers():
    dataset = Epochs()
    return DataLoader(dataset, num_workers=1), dataset


def set_through_the_loader():
    loader = DataLoader(Epochs(), num_workers=1, persistent_workers=True)
    return loader, loader.dataset


VARIANTS = {v.__name__: v for v in (failing, fixed, new_workers, set_through_the_loader)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    loader, dataset = VARIANTS[variant]()
    got = []
    for epoch in range(3):
        dataset.set_epoch(epoch)
        got += [int(batch) for batch in loader]
    assert got == [0, 1, 2], f"expected the epochs [0, 1, 2], got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
