# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0089"
# title = "The two parts of random_split share one dataset, and so one transform"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/data.html#torch.utils.data.random_split"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/56886",
#     "https://github.com/gpleiss/efficient_densenet_pytorch/issues/51",
#     "https://github.com/microsoft/torchgeo/issues/257",
#     "https://github.com/udacity/deep-learning-v2-pytorch/issues/132",
# ]
# packages = ["torch"]
# home = "2023-12"
# silent = true
#
# [tool.repro.variants.failing]
# about = "split, then give the training part an augmentation"
# raises = "AssertionError"
# match = "expected 0 augmented samples of 5 in the validation part, got 5"
#
# [tool.repro.variants.fixed]
# about = "two datasets, and the same indices of each"
# source = "https://github.com/gpleiss/efficient_densenet_pytorch/issues/51"
#
# [tool.repro.variants.copied_dataset]
# outcome = "passes"
# about = "a shallow copy of the dataset for the training part"
# ///
"""Validation samples are augmented as if they were training samples.

Symptom: validation metrics are noisy and too low once the training part has a transform of its own. Silent.

Cause: `random_split` returns two `Subset` objects with indices into one dataset. `train.dataset.transform = ...` sets
the transform of that dataset, which the validation part reads from as well.

Fix: make the dataset twice, with a transform each, and take `Subset`s with the same split.

Watch: no check sees it, since which samples are meant to be augmented is known to the program alone.
"""

import copy
import sys

import torch
from torch.utils.data import Dataset, Subset, random_split


class Numbers(Dataset):
    def __init__(self, transform=float):
        self.transform = transform

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.transform(index)


def augment(sample):
    return sample + 0.5


def failing(generator):
    train, validation = random_split(Numbers(), [5, 5], generator)
    train.dataset.transform = augment
    return validation


def fixed(generator):
    _train, validation = random_split(Numbers(augment), [5, 5], generator)
    return Subset(Numbers(), validation.indices)


def copied_dataset(generator):
    train, validation = random_split(Numbers(), [5, 5], generator)
    train.dataset = copy.copy(train.dataset)
    train.dataset.transform = augment
    return validation


VARIANTS = {v.__name__: v for v in (failing, fixed, copied_dataset)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    validation = VARIANTS[variant](torch.Generator().manual_seed(0))
    got = sum(validation[number] % 1 == 0.5 for number in range(len(validation)))
    assert got == 0, f"expected 0 augmented samples of 5 in the validation part, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
