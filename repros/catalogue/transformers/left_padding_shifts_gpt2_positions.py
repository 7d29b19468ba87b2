# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0168"
# title = "Left padding shifts GPT-2's positions, whatever the attention mask says"
# kind = "by design"
# documented = "https://github.com/huggingface/transformers/issues/18478"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/issues/9173",
#     "https://github.com/huggingface/transformers/issues/18388",
#     "https://github.com/huggingface/transformers/issues/21080",
#     "https://github.com/huggingface/trl/issues/469",
#     "https://github.com/ndif-team/nnsight/issues/672",
# ]
# upstream.related = [
#     "https://github.com/huggingface/transformers/pull/29583",
#     "https://github.com/huggingface/transformers/issues/3167",
#     "https://github.com/huggingface/transformers/issues/3021",
#     "https://github.com/huggingface/transformers/pull/7552",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
# finds = ["padding_counts_as_positions"]
#
# [tool.repro.variants.failing]
# about = "a forward with input_ids and attention_mask of a text that is padded on the left"
# raises = "AssertionError"
# match = "expected 0.0, got 0.412"
#
# [tool.repro.variants.fixed]
# about = "position_ids that count the mask, as generate() makes them"
# source = "https://github.com/huggingface/transformers/issues/18478"
#
# [tool.repro.variants.right_padding]
# outcome = "passes"
# about = "padding on the right, and the logits of the last real token"
# source = "https://github.com/huggingface/transformers/issues/18478"
#
# [tool.repro.variants.pad_token_set]
# outcome = "fails"
# about = "pad_token_id in the model's configuration: the positions are those of before"
# claim = "left padding, with the padding token set in GPT-2, decodes texts of several lengths in a batch"
# source = "https://github.com/huggingface/transformers/issues/21080"
# ///
"""Texts of several lengths are scored in one batch that is padded on the left, as for generation.

Symptom: the logits of the shorter texts are not those that they have alone. `generate()` is right with the same batch.
Silent.

Cause: without `position_ids` GPT-2 numbers the tokens of each row from 0, and the padding counts. The attention mask
hides the padding from the other tokens, and changes no position. Models with learned absolute positions are affected,
except those that count the mask, as OPT does; with rotary ones only distances count.

Fix: pass `position_ids`, made from the mask: `mask.cumsum(-1) - 1`. Or pad on the right outside of generation.
"""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

TEXT, PAD = [3, 4, 5], 0


def new_model():
    sizes = {"vocab_size": 8, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 1}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # the same weights with each release
            parameter.copy_(torch.arange(parameter.numel()).sin().view_as(parameter))
    return model


def failing(model):
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    return model(torch.tensor([[PAD, PAD, *TEXT]]), attention_mask=mask).logits[0, -1]


def fixed(model):
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return model(torch.tensor([[PAD, PAD, *TEXT]]), attention_mask=mask, position_ids=positions).logits[0, -1]


def right_padding(model):
    mask = torch.tensor([[1, 1, 1, 0, 0]])
    return model(torch.tensor([[*TEXT, PAD, PAD]]), attention_mask=mask).logits[0, mask.sum() - 1]


def pad_token_set(model):
    model.config.pad_token_id = PAD
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    return model(torch.tensor([[PAD, PAD, *TEXT]]), attention_mask=mask).logits[0, -1]


VARIANTS = {v.__name__: v for v in (failing, fixed, right_padding, pad_token_set)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    model = new_model()
    with torch.no_grad():
        alone = model(torch.tensor([TEXT])).logits[0, -1]
        got = round((VARIANTS[variant](model) - alone).abs().max().item(), 3)
    assert got == 0.0, f"the largest difference from the logits of the text alone: expected 0.0, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
