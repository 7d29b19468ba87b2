# /// script
# dependencies = ["torch>=2.0", "lightning>=2.0"]
#
# [tool.repro]
# id = "RPR-0200"
# title = "Lightning's predict makes a custom batch sampler anew, and fails"
# kind = "limitation"
# documented = "https://lightning.ai/docs/pytorch/stable/common/trainer.html"
# upstream.reports = [
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/11807",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/19657",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20253",
#     "https://github.com/Lightning-AI/pytorch-lightning/issues/20741",
# ]
# upstream.related = ["https://github.com/Lightning-AI/pytorch-lightning/pull/19678"]
# packages = ["lightning"]
# home = "2023-12"
#
# [tool.repro.variants.failing]
# about = "a batch sampler with an argument of its own, made before predict is called"
# raises = "TypeError"
# match = "__init__() missing 1 required positional argument: 'lengths'"
# frames = ["lightning/pytorch/utilities/data.py:_dataloader_init_kwargs_resolve_sampler"]
#
# [tool.repro.variants.fixed]
# about = "the same, made in the hook predict_dataloader"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/11807"
#
# [tool.repro.variants.undistributed]
# outcome = "fails"
# about = "Trainer(use_distributed_sampler=False)"
# claim = "the message: Lightning then leaves the distributed sampling to the batch sampler"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/19657"
#
# [tool.repro.variants.no_sampler_argument]
# outcome = "fails"
# about = "made in the hook, but without an argument `sampler`"
# raises = "TypeError"
# match = "Trying to inject a modified sampler into the batch sampler; however, it seems the class"
# claim = "the message: instantiate the batch sampler inside the hook"
# source = "https://github.com/Lightning-AI/pytorch-lightning/issues/20253"
#
# [tool.repro.variants.plain]
# outcome = "fails"
# about = "a class without batch_size and drop_last, which Lightning 2.3 takes as it is"
# source = "https://github.com/Lightning-AI/pytorch-lightning/pull/19678"
# raises = "TypeError"
# match = "Lightning can't inject a (distributed) sampler into your batch sampler, because it doesn't subclass"
# affected = ["lightning<2.3"]
# requires = ["lightning>=2.1"]
#
# [tool.repro.variants.tested]
# outcome = "passes"
# contrast = true
# about = "trainer.test with the same loader"
# ///
"""A prediction that fails with the batch sampler that trained, validated and tested.

Symptom: `trainer.predict` raises a TypeError about the `__init__` of the batch sampler, or "Lightning can't inject a
(distributed) sampler into your batch sampler", with one device, too, and whatever `use_distributed_sampler` is.

Cause: for predictions Lightning always makes the batch sampler anew, with `drop_last=False`, to have all samples and
their indices. It calls the class with `sampler`, `batch_size` and `drop_last`, and so fails where there is another
required argument. Only what is made in a `*_dataloader` hook has its arguments recorded, and then one of them must be
`sampler`. `use_distributed_sampler=False`, which the message names, is asked in training and tests, not here.

Fix: make the batch sampler in `predict_dataloader`, with `sampler` among its arguments. From Lightning 2.3 on, a class
that has not both attributes `batch_size` and `drop_last` is taken as it is.

Apart: RPR-0115 is a batch sampler that is made anew under DDP; there `use_distributed_sampler=False` helps.
"""

import sys

from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

LENGTHS = [3, 1, 4, 2]


class ByLength(BatchSampler):
    def __init__(self, sampler, batch_size, drop_last, lengths):
        super().__init__(sampler, batch_size, drop_last)
        self.lengths = lengths

    def __iter__(self):
        order = sorted(self.sampler, key=self.lengths.__getitem__)
        return (order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size))


class OfTwo(ByLength):
    def __init__(self, lengths):
        super().__init__(SequentialSampler(lengths), 2, False, lengths)


class Plain:
    def __iter__(self):
        return iter([[1, 3], [0, 2]])

    def __len__(self):
        return 2


def by_length():
    return ByLength(SequentialSampler(LENGTHS), 2, False, LENGTHS)


class Model(LightningModule):
    def __init__(self, new_sampler):
        super().__init__()
        self.new_sampler, self.batches = new_sampler, []

    def predict_dataloader(self):
        return DataLoader(LENGTHS, batch_sampler=self.new_sampler())

    def predict_step(self, batch, batch_idx):
        self.batches.append(batch.tolist())

    test_dataloader, test_step = predict_dataloader, predict_step


def failing(new_trainer):
    sampler = by_length()
    return new_trainer().predict, Model(lambda: sampler)


def fixed(new_trainer):
    return new_trainer().predict, Model(by_length)


def undistributed(new_trainer):
    sampler = by_length()
    return new_trainer(use_distributed_sampler=False).predict, Model(lambda: sampler)


def no_sampler_argument(new_trainer):
    return new_trainer().predict, Model(lambda: OfTwo(LENGTHS))


def plain(new_trainer):
    return new_trainer().predict, Model(Plain)


def tested(new_trainer):
    return new_trainer().test, Model(by_length)


VARIANTS = {v.__name__: v for v in (failing, fixed, undistributed, no_sampler_argument, plain, tested)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")

    def new_trainer(**options):
        return Trainer(accelerator=accelerator, strategy=strategy, devices=1, barebones=True, **options)

    run, model = VARIANTS[variant](new_trainer)
    run(model)
    assert model.batches == [[1, 2], [3, 4]], f"expected the batches [[1, 2], [3, 4]], got {model.batches}"


if __name__ == "__main__":
    main(*sys.argv[1:])
