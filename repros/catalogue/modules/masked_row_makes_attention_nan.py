# /// script
# dependencies = ["torch>=2.0"]
#
# [tool.repro]
# id = "RPR-0074"
# title = "MultiheadAttention gives NaN for a query whose keys are all masked"
# kind = "bug"
# upstream.reports = [
#     "https://github.com/pytorch/pytorch/issues/27968",
#     "https://github.com/pytorch/pytorch/issues/40932",
#     "https://github.com/pytorch/pytorch/issues/41508",
#     "https://github.com/pytorch/pytorch/issues/152028",
#     "https://github.com/pytorch/pytorch/issues/160064",
# ]
# upstream.unreleased_fix = ["https://github.com/pytorch/pytorch/pull/196170"]
# packages = ["torch"]
# home = "2023-12"
# devices = ["cpu", "cuda"]
# silent = true
#
# [tool.repro.variants.failing]
# about = "mask every key of one sample of a batch; weights asked for, as by default"
# raises = "AssertionError"
# match = "expected 0 outputs of NaN, got 2"
#
# [tool.repro.variants.fixed]
# about = "leave each sample one key that is not masked"
#
# [tool.repro.variants.without_weights]
# outcome = "fails"
# about = "need_weights=False, which takes the fused kernels: zeros in place of NaN from torch 2.5 on"
# affected = ["torch<2.5"]
# ///
"""One empty sequence in a batch makes the whole model NaN.

Symptom: the loss is NaN for batches with a sample that is all padding. Silent until then.

Cause: masked scores are -inf, and the softmax of a row of -inf is 0 / 0. The output of that sample is NaN; in the backward
so are the gradients of the projection's weights, which all samples share. `key_padding_mask` and `attn_mask` together
can mask a row that neither of them masks alone.

Fix: let every row keep a key, such as a first token, or leave such samples out. From torch 2.5 on
`scaled_dot_product_attention` gives zeros for such rows; `MultiheadAttention` uses it with `need_weights=False` alone.

Watch: the script trains nothing; in a training `weights_not_finite` finds the NaN, whatever the cause is, and so cannot
name it.
"""

import sys

import torch


def failing(attention, x, padding):
    return attention(x, x, x, key_padding_mask=padding)[0]


def fixed(attention, x, padding):
    return attention(x, x, x, key_padding_mask=padding & ~padding.all(dim=1, keepdim=True))[0]


def without_weights(attention, x, padding):
    return attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]


VARIANTS = {v.__name__: v for v in (failing, fixed, without_weights)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    attention = torch.nn.MultiheadAttention(1, 1, batch_first=True, device=accelerator)
    x = torch.ones(2, 2, 1, device=accelerator)
    padding = torch.tensor([[False, False], [True, True]], device=accelerator)  # the second sample has no token
    got = int(VARIANTS[variant](attention, x, padding).isnan().sum())
    assert got == 0, f"expected 0 outputs of NaN, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
