# /// script
# dependencies = ["torch>=2.0", "transformers>=4.36", "peft>=0.10"]
#
# [tool.repro]
# id = "RPR-0169"
# title = "prepare_model_for_kbit_training after get_peft_model freezes the adapter"
# kind = "misuse"
# documented = "https://huggingface.co/docs/peft/developer_guides/quantization"
# upstream.reports = [
#     "https://github.com/huggingface/trl/issues/3926",
#     "https://github.com/huggingface/trl/pull/4081",
# ]
# upstream.related = [
#     "https://github.com/huggingface/peft/pull/760",
#     "https://github.com/huggingface/peft/issues/2299",
# ]
# packages = ["peft"]
# home = "2025-11"
# silent = true
# finds = ["adapter_frozen_by_preparation"]
#
# [tool.repro.variants.failing]
# about = "get_peft_model, then prepare_model_for_kbit_training"
# raises = "AssertionError"
# match = "expected 4 trainable parameters with a gradient, got 0"
#
# [tool.repro.variants.fixed]
# about = "prepare_model_for_kbit_training first"
# source = "https://huggingface.co/docs/peft/developer_guides/quantization"
#
# [tool.repro.variants.prepared_twice]
# outcome = "fails"
# about = "in the right order, and once more on the adapted model, as trl's SFTTrainer did with a PeftModel"
# source = "https://github.com/huggingface/trl/issues/3926"
# claim = "the trainer prepares the quantised model that it is given"
#
# [tool.repro.variants.adapter_set_again]
# outcome = "passes"
# about = "set_adapter afterwards, which makes the active adapter trainable"
# ///
"""A QLoRA training in which nothing is trained.

Symptom: `print_trainable_parameters()` shows 0, and the loss stays where it is. Silent with gradient checkpointing, which
`prepare_model_for_kbit_training` switches on for a quantised model.

Cause: it sets `requires_grad` to False on all parameters, those of an adapter, too. Then it makes the output of the
embedding require gradients, so that `backward()` raises nothing.

Fix: prepare the base model, then add the adapter.
"""

import sys

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import LlamaConfig, LlamaForCausalLM

CONFIG = LoraConfig(r=2, target_modules=["q_proj", "v_proj"])


def failing(base):
    return prepare_model_for_kbit_training(get_peft_model(base, CONFIG))


def fixed(base):
    return get_peft_model(prepare_model_for_kbit_training(base), CONFIG)


def prepared_twice(base):
    model = get_peft_model(prepare_model_for_kbit_training(base), CONFIG)
    return prepare_model_for_kbit_training(model)


def adapter_set_again(base):
    model = prepare_model_for_kbit_training(get_peft_model(base, CONFIG))
    model.set_adapter("default")
    return model


VARIANTS = {v.__name__: v for v in (failing, fixed, prepared_twice, adapter_set_again)}


def main(variant="failing", strategy="auto", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=8, use_cache=False, **sizes))
    base.is_loaded_in_4bit = True  # as quantised loading sets it; the weights themselves do not matter here
    model = VARIANTS[variant](base).train()
    tokens = torch.tensor([[1, 2, 3, 4]])
    model(input_ids=tokens, labels=tokens).loss.backward()
    # Two matrices of each adapted layer.
    got = sum(parameter.requires_grad and parameter.grad is not None for parameter in model.parameters())
    assert got == 4, f"expected 4 trainable parameters with a gradient, got {got}"


if __name__ == "__main__":
    main(*sys.argv[1:])
