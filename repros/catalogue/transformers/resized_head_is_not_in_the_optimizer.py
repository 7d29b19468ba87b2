# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36"]
#
# [tool.repro]
# id = "RPR-0163"
# title = "resize_token_embeddings after the optimizer leaves the new lm_head untrained"
# kind = "misuse"
# documented = "https://huggingface.co/docs/transformers/main_classes/model"
# upstream.reports = [
#     "https://github.com/huggingface/transformers/pull/3532",
#     "https://github.com/helpmefindaname/transformer-smaller-training-vocab/pull/3",
# ]
# packages = ["transformers"]
# home = "2024-03"
# silent = true
#
# [tool.repro.variants.failing]
# about = "the optimizer, then resize_token_embeddings"
# raises = "AssertionError"
# match = ["expected 2 trained layers, got 1", "expected 2 trained layers, got 0"]
#
# [tool.repro.variants.fixed]
# about = "resize_token_embeddings, then the optimizer"
# source = "https://github.com/huggingface/transformers/pull/3532"
#
# [tool.repro.variants.weights_added]
# outcome = "passes"
# about = "what the model has and the optimizer has not added to it"
# source = "https://github.com/helpmefindaname/transformer-smaller-training-vocab/pull/3"
# ///
"""The vocabulary grows after the optimizer was made, and new weights stay as they are.

Symptom: the model trains, and its head does not: the new tokens are never predicted. Silent.

Cause: `resize_token_embeddings` makes a new `nn.Linear` for a head that is not tied to the embedding. The optimizer
holds the old one's weight, which no model has any more. From transformers 4.43 on the embedding keeps its parameter; up
to 4.42 it is a new one as well, and both layers stay untrained.

Fix: resize before the optimizer is made.

Watch: no check sees it in the first steps; an optimizer may hold more than one model's parameters.
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def failing(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.resize_token_embeddings(9)
    return optimizer


def fixed(model):
    model.resize_token_embeddings(9)
    return torch.optim.SGD(model.parameters(), lr=1.0)


def weights_added(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.resize_token_embeddings(9)
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    optimizer.add_param_group({"params": [p for p in model.parameters() if id(p) not in held]})
    return optimizer


VARIANTS = {v.__name__: v for v in (failing, fixed, weights_added)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=8, **sizes))
    optimizer = VARIANTS[variant](model)
    layers = [model.get_input_embeddings(), model.get_output_embeddings()]
    before = [layer.weight.detach().clone() for layer in layers]
    tokens = torch.tensor([[1, 2, 8, 3]])  # 8 is the new token
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    got = sum(not torch.equal(old, layer.weight) for old, layer in zip(before, layers))
    assert got == 2, f"expected 2 trained layers, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
