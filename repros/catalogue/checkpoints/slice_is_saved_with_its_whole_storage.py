# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0075"
# title = "torch.save writes the whole storage of a slice"
# kind = "by design"
# documented = "https://pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/1995",
#     "https://github.com/pytorch/pytorch/issues/8109",
#     "https://github.com/pytorch/pytorch/issues/33101",
#     "https://github.com/pytorch/pytorch/issues/40157",
#     "https://github.com/pytorch/pytorch/issues/44872",
#     "https://github.com/pytorch/pytorch/issues/53419",
#     "https://github.com/pytorch/pytorch/issues/95278",
#     "https://github.com/pytorch/pytorch/issues/104523",
#     "https://github.com/threestudio-project/threestudio/pull/457",
# ]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "save the first 10 of a million numbers"
# raises = "AssertionError"
# match = "expected a file of a few kB, got 4 MB"
#
# [tool.repro.variants.fixed]
# about = "save a clone of the slice"
# source = "https://pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views"
#
# [tool.repro.variants.detached]
# outcome = "fails"
# about = "detach() and contiguous() give no other storage: the slice is contiguous"
# ///
"""Cached features, embeddings or samples take thousands of times the space that they should.

Symptom: files of small tensors are as large as the batch or the table from which they were cut. Silent.

Cause: `torch.save` writes storages, not tensors, so that tensors which share memory still do after the load. A slice, a
chunk or an unbound row is a view into the storage of the whole.

Fix: `tensor.clone()` before the save.

Watch: no check sees it, since nothing is trained wrongly: the file is too large.
"""

import io
import sys

import torch


def failing(table):
    return table[:10]


def fixed(table):
    return table[:10].clone()


def detached(table):
    return table[:10].detach().contiguous()


VARIANTS = {v.__name__: v for v in (failing, fixed, detached)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    table = torch.zeros(1_000_000, device=accelerator)  # of 4 bytes each
    file = io.BytesIO()
    torch.save(VARIANTS[variant](table), file)
    got = len(file.getvalue()) // 1_000_000
    assert got == 0, f"expected a file of a few kB, got {got} MB"


if __name__ == "__main__":
    main(*sys.argv[1:])
