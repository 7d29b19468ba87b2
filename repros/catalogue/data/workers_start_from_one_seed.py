# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0098"
# title = "A fixed seed in worker_init_fn repeats the draws in each worker and epoch"
# kind = "misuse"
# documented = "https://pytorch.org/docs/stable/notes/randomness.html#dataloader"
# upstream.reports = [
#     "https://github.com/bubbliiiing/yolox-pytorch/issues/154",
#     "https://github.com/open-mmlab/mmdetection/issues/8110",
#     "https://github.com/fangchangma/sparse-to-dense.pytorch/issues/19",
# ]
# upstream.related = ["https://github.com/pytorch/pytorch/issues/5059"]
# packages = ["torch"]
# home = "2023-12"
# silent = true
# finds = ["draws_repeated_by_workers"]
#
# [tool.repro.variants.failing]
# about = "torch.manual_seed(0) in worker_init_fn, two workers, two epochs"
# raises = "AssertionError"
# match = "expected 8 different augmentations, got 2"
#
# [tool.repro.variants.fixed]
# about = "seed it from the worker's seed"
# source = "https://pytorch.org/docs/stable/notes/randomness.html#dataloader"
#
# [tool.repro.variants.no_worker_init_fn]
# outcome = "passes"
# about = "leave it to PyTorch, which gives each worker and epoch a seed of its own"
#
# [tool.repro.variants.seeded_by_worker]
# outcome = "fails"
# about = "seed it with 0 and the worker's number: each epoch begins anew"
# raises = "AssertionError"
# match = "expected 8 different augmentations, got 4"
# finds = []
# ///
"""Augmentations repeat because the workers were seeded for a training that can be repeated.

Symptom: a batch of one worker is augmented as that of the next, and each epoch as the one before. Silent.

Cause: `worker_init_fn` is called in each worker at the beginning of each epoch, after PyTorch has given `torch`, `random`
and NumPy a seed that differs for each worker and epoch. One with a seed of its own sets them all back to one state.

Fix: derive the seed from `torch.initial_seed()`, which is repeated in each run if `torch.manual_seed` was called.

Apart: RPR-0085 has the same symptom without a `worker_init_fn`: there the generator belongs to the data set.

Watch: `seeded_by_worker` is not found: which draws the epoch before has made is not known.
"""

import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.randint(10**9, ()).item()


def failing(worker):
    torch.manual_seed(0)


def fixed(worker):
    torch.manual_seed(torch.initial_seed() + 1)


def seeded_by_worker(worker):
    torch.manual_seed(0 + worker)


VARIANTS = {"failing": failing, "fixed": fixed, "no_worker_init_fn": None, "seeded_by_worker": seeded_by_worker}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    layer = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    loader = DataLoader(Augmented(), num_workers=2, worker_init_fn=VARIANTS[variant])
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
