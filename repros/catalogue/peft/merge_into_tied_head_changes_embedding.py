# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0134"
# title = "Merging LoRA into a tied lm_head changes the embedding, too"
# kind = "limitation"
# documented = "https://github.com/huggingface/peft/issues/2018"
# upstream.reports = [
#     "https://github.com/huggingface/peft/issues/2018",
#     "https://github.com/huggingface/transformers/issues/30316",
# ]
# upstream.related = [
#     "https://github.com/huggingface/peft/issues/2777",
#     "https://github.com/huggingface/peft/issues/2864",
#     "https://github.com/huggingface/transformers/issues/45127",
#     "https://github.com/huggingface/peft/pull/2025",
#     "https://github.com/huggingface/peft/pull/2972",
# ]
# packages = ["peft"]
# home = "2024-03"
# silent = true
# finds = ["merge_changes_shared_weight"]
#
# [tool.repro.variants.failing]
# about = "lm_head as a target of a model with tie_word_embeddings, then merge_and_unload"
# raises = "AssertionError"
# match = "expected logits that merging changes by 0.0, got 3.54"
#
# [tool.repro.variants.fixed]
# about = "before the adapter, a weight of its own for the head"
# source = "https://github.com/huggingface/peft/issues/2018"
#
# [tool.repro.variants.untied_in_config]
# outcome = "fails"
# about = "tie_word_embeddings = False in the configuration of the loaded model, whose weights stay shared"
#
# [tool.repro.variants.tying_ensured]
# outcome = "fails"
# about = "ensure_weight_tying=True: from 0.19 on the embedding has the adapter, too, and the weight gets both"
# requires = ["peft>=0.18"]
# raises = "AssertionError"
# match = ["merging changes by 0.0, got 68.14", "merging changes by 0.0, got 3.54"]
# claim = "without ensure_weight_tying a tied layer can lead to complications when the adapter is merged"
# source = "https://github.com/huggingface/peft/pull/2879"
#
# [tool.repro.variants.other_targets]
# outcome = "passes"
# contrast = true
# about = "targets that share no weight"
# ///
"""The merged model answers differently from the adapted one.

Symptom: after `merge_and_unload` the logits are others, or the text is nonsense. PEFT warns since 0.13 that
`tie_word_embeddings=True` and a tied layer "can lead to complications".

Cause: the adapter is computed beside `lm_head` alone. Merging adds it to `lm_head.weight`, which is the tensor of
`embed_tokens.weight`, so all inputs are embedded differently.

Fix: untie first: give the head a copy of the weight and set `tie_word_embeddings` to False. Or leave both layers out of
`target_modules`. Both in `modules_to_save` merge as they should, but up to transformers 4.57 the merged model ties them
again when it is saved and loaded.
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


def adapt(base, target, **options):
    return get_peft_model(base, LoraConfig(r=4, target_modules=[target], init_lora_weights=False, **options))


def failing(base):
    return adapt(base, "lm_head")


def fixed(base):
    base.lm_head.weight = nn.Parameter(base.lm_head.weight.detach().clone())
    base.config.tie_word_embeddings = False
    return adapt(base, "lm_head")


def untied_in_config(base):
    base.config.tie_word_embeddings = False
    return adapt(base, "lm_head")


def tying_ensured(base):
    return adapt(base, "lm_head", ensure_weight_tying=True)


def other_targets(base):
    return adapt(base, "q_proj")


VARIANTS = {v.__name__: v for v in (failing, fixed, untied_in_config, tying_ensured, other_targets)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=16, tie_word_embeddings=True, **sizes)).eval()
    model = VARIANTS[variant](base).eval()
    tokens = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        adapted = model(input_ids=tokens).logits
        merged = model.merge_and_unload()(input_ids=tokens).logits
    got = (merged - adapted).abs().max().item()
    assert got < 1e-4, f"expected logits that merging changes by 0.0, got {got:.2f}"


if __name__ == "__main__":
    main(*sys.argv[1:])
