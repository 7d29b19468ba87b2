# /// script
# dependencies = ["torch>=2.0", "accelerate>=0.20"]
#
# [tool.repro]
# id = "RPR-0146"
# title = "Batches with strings from an iterable data set cannot be put together on rank 0"
# kind = "limitation"
# documented = "https://github.com/huggingface/accelerate/issues/4111"
# upstream.reports = [
#     "https://github.com/huggingface/accelerate/issues/1878",
#     "https://github.com/huggingface/accelerate/issues/2568",
#     "https://github.com/huggingface/accelerate/issues/3849",
#     "https://github.com/huggingface/accelerate/issues/4111",
#     "https://github.com/huggingface/accelerate/issues/2334",
#     "https://github.com/HeegerGao/VLA-OS/issues/7",
#     "https://github.com/huggingface/accelerate/issues/178",
#     "https://github.com/huggingface/accelerate/issues/3624",
# ]
# upstream.related = [
#     "https://github.com/huggingface/accelerate/pull/3686",
#     "https://github.com/huggingface/accelerate/pull/3850",
#     "https://github.com/huggingface/accelerate/pull/4117",
#     "https://github.com/huggingface/accelerate/pull/4120",
#     "https://github.com/huggingface/trl/pull/3226",
# ]
# packages = ["accelerate"]
# home = "current"
# strategies = ["ddp"]
# processes = 2
# deadline = 60
# finds = ["crash"]
#
# [tool.repro.variants.failing]
# about = "a prepared loader over an iterable whose samples have a text"
# raises = "TypeError"
# match = "Can only concatenate tensors but got <class 'str'>"
#
# [tool.repro.variants.fixed]
# about = "dispatch_batches=False: each rank reads for itself, and takes its part"
# source = "https://github.com/huggingface/accelerate/issues/2367"
#
# [tool.repro.variants.map_style]
# outcome = "passes"
# about = "the same samples as a data set with a length, which is never dispatched"
#
# [tool.repro.variants.one_text]
# outcome = "fails"
# about = "one text for the whole batch from a collate function of one's own"
# ///
"""A prepared loader over an iterable data set yields batches with a text, a file name or another value that is no tensor.

Symptom: `TypeError: Can only concatenate tensors but got <class 'str'>` on rank 0, from the first batch on; the other
ranks wait for it. One rank works, or fails only in accelerate before 1.13.

Cause: for an iterable data set `prepare` chooses `dispatch_batches=True`: rank 0 reads a batch for each rank, joins
them and cuts the whole apart again. `concatenate` can join tensors, and lists and dictionaries of them.

Fix: `dispatch_batches=False`, with which each rank reads the data itself, or a data set that has a length. `Trainer` of
transformers takes it as `accelerator_config={"dispatch_batches": False}`. Or leave the strings out in the collate
function.
"""

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
from torch.distributed import run
from torch.utils.data import DataLoader, IterableDataset

SAMPLES = [{"x": x, "text": f"sample {x}"} for x in range(4)]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(SAMPLES)


def collate(samples):
    return {"x": torch.tensor([sample["x"] for sample in samples]), "text": " ".join(s["text"] for s in samples)}


def failing(accelerator):
    return accelerator.prepare(DataLoader(Stream()))


def fixed(accelerator):
    return prepare_data_loader(DataLoader(Stream()), put_on_device=True, dispatch_batches=False)


def map_style(accelerator):
    return accelerator.prepare(DataLoader(SAMPLES))


def one_text(accelerator):
    return accelerator.prepare(DataLoader(Stream(), collate_fn=collate))


VARIANTS = {v.__name__: v for v in (failing, fixed, map_style, one_text)}


def train(variant, accelerator):
    accelerator = Accelerator(cpu=accelerator == "cpu")
    seen = torch.cat([batch["x"] for batch in VARIANTS[variant](accelerator)])
    got = sorted(accelerator.gather(seen).tolist())
    assert got == [0, 1, 2, 3], f"expected [0, 1, 2, 3], got {got}"


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    if "RANK" in os.environ:
        train(variant, accelerator)
    else:  # run bare: what `torchrun --nproc-per-node=2` does
        run.main(["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2", __file__, *sys.argv[1:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
